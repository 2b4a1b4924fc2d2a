"""Vectors of all-MiniLM-L6-v2 for a training text, as `[training.teacher]` reads them.

    MINILM/bin/python benchmarks/peers/teach_minilm.py MODEL OUT SHARD … [--every 4]

MODEL is the directory of the model, OUT a directory: vectors.npy and vectors.tokens.jsonl have a
vector for each word of every fourth sentence of the shards: the mean of its pieces' layers 2, 4 and
6, each divided by its mean length, on their first 128 principal components, in half precision. The
components are those of the first words; map.npz keeps them, for more vectors of the same kind.
Computes with bfloat16 products, on a GPU if there is one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from embed_minilm import read
from transformers import AutoModel, AutoTokenizer

SIZE = 128
MAP_WORDS = 100_000  # of which the components are
BATCH = {"cpu": 32, "cuda": 512}  # sentences
PACKED: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}


def read_sentences(shards: list[Path], every: int) -> Iterator[list[str]]:
    """The first of every so many sentences of the shards: text, also .gz or .xz."""
    for shard in shards:
        with PACKED.get(shard.suffix, open)(shard, "rt", encoding="utf-8", newline="\n") as lines:
            yield from filter(None, map(str.split, islice(lines, 0, None, every)))


def principal_components(layers: torch.Tensor) -> dict[str, np.ndarray]:
    """A map of the layers: their mean, scale, and first components ``(3 × 384, 128)``; of the words
    that have pieces."""
    layers = layers[layers.any(1)]
    scale = torch.cat([part.norm(dim=1).mean().expand(384) for part in layers.split(384, 1)])
    x = layers / scale
    mean = x.mean(0)
    _, vectors = torch.linalg.eigh((x - mean).T.double() @ (x - mean).double())
    arrays = {"scale": scale, "mean": mean, "components": vectors.flip(1)[:, :SIZE].float()}
    return {name: array.cpu().numpy() for name, array in arrays.items()}


def reduce(layers: torch.Tensor, arrays: dict[str, torch.Tensor]) -> np.ndarray:
    """The vectors of words ``(n, 128)``; zeros remain zeros.

    Args:
        layers: ``(n, 3 × 384)``, zeros for a word without pieces.
        arrays: see `principal_components`.
    """
    reduced = (layers / arrays["scale"] - arrays["mean"]) @ arrays["components"]
    return (reduced * layers.any(1, keepdim=True)).half().cpu().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("shards", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=4, help="sentences, of which one is read")
    arguments = parser.parse_args()
    out, device = arguments.out, "cuda" if torch.cuda.is_available() else "cpu"
    out.mkdir(parents=True, exist_ok=True)
    model = AutoModel.from_pretrained(arguments.model).float().eval().to(device)
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    sentences = list(read_sentences(arguments.shards, arguments.every))
    ends = list(accumulate(map(len, sentences)))

    def teach(sentences: list[list[str]]) -> Iterator[tuple[int, torch.Tensor]]:
        for i, vectors in read(model, tokenizer, sentences, BATCH[device], mixed=True):
            yield i, vectors[1:].transpose(0, 1).flatten(1)  # without layer 0

    file = out / "map.npz"
    if not file.exists():
        sample = [words for words, end in zip(sentences, ends, strict=True) if end < MAP_WORDS]
        np.savez(file, **principal_components(torch.cat([layers for _, layers in teach(sample)])))
    arrays = {name: torch.from_numpy(a).to(device) for name, a in np.load(file).items()}
    vectors = np.lib.format.open_memmap(out / "vectors.npy", "w+", "float16", (ends[-1], SIZE))
    for i, layers in teach(sentences):
        vectors[ends[i] - len(layers) : ends[i]] = reduce(layers, arrays)
    vectors.flush()
    with (out / "vectors.tokens.jsonl").open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"tokens": words}) + "\n" for words in sentences)


if __name__ == "__main__":
    main()
