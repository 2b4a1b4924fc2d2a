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
from transformers import AutoModel, AutoTokenizer

LAYERS = (2, 4, 6)
SIZE = 128
MAP_WORDS = 100_000  # of which the components are
BATCH_PIECES = {"cpu": 1024, "cuda": 65536}
MOST_PIECES = 256  # of a sentence; words behind them have zeros, which teach nothing
CLS, SEP, PAD = 101, 102, 0
PACKED: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}


def read_sentences(shards: list[Path], every: int) -> Iterator[list[str]]:
    """The first of every so many sentences of the shards: text, also .gz or .xz."""
    for shard in shards:
        with PACKED.get(shard.suffix, open)(shard, "rt", encoding="utf-8", newline="\n") as lines:
            yield from filter(None, map(str.split, islice(lines, 0, None, every)))


class Pieces:
    """The pieces of words; a word's do not depend on its sentence.

    Args:
        sentences: whose words they are.
        tokenizer: of the model.
    """

    def __init__(self, sentences: list[list[str]], tokenizer: AutoTokenizer):
        types = {word: i for i, word in enumerate(dict.fromkeys(w for s in sentences for w in s))}
        found = tokenizer(list(types), add_special_tokens=False)["input_ids"]
        self.ids = np.array([piece for word in found for piece in word])
        self.counts = np.array([len(word) for word in found])
        self.starts = np.cumsum(self.counts) - self.counts
        self.types = types

    def of(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of a sentence's pieces with the special ones, and the word of each (the number
        of words for those that have none)."""
        types = np.array([self.types[word] for word in words])
        counts = self.counts[types]
        first = np.repeat(self.starts[types] - np.cumsum(counts) + counts, counts)
        ids = self.ids[first + np.arange(len(first))][: MOST_PIECES - 2]
        word = np.repeat(np.arange(len(words)), counts)[: MOST_PIECES - 2]
        none = [len(words)]
        return np.concatenate([[CLS], ids, [SEP]]), np.concatenate([none, word, none])


class Teacher:
    """MiniLM on one device.

    Args:
        path: its directory.
    """

    def __init__(self, path: Path):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = AutoModel.from_pretrained(path).float().eval().to(self.device)
        self.tokenizer = AutoTokenizer.from_pretrained(path)

    def read(self, batch: list[tuple[np.ndarray, np.ndarray]], n_words: list[int]) -> torch.Tensor:
        """The layers of all words of a batch, ``(n, 3 × 384)``, on the device."""
        longest = max(len(ids) for ids, _ in batch)
        ids = np.full((len(batch), longest), PAD)
        words = np.full((len(batch), longest), sum(n_words))
        for row, ((pieces, word), start) in enumerate(
            zip(batch, accumulate(n_words, initial=0), strict=False)
        ):
            ids[row, : len(pieces)] = pieces
            words[row, : len(pieces)] = np.where(word < n_words[row], word + start, sum(n_words))
        inputs = torch.from_numpy(ids).to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16):
            found = self.model(
                inputs, attention_mask=(inputs != PAD).long(), output_hidden_states=True
            ).hidden_states
        layers = torch.cat([found[i] for i in LAYERS], -1).float().flatten(0, 1)
        target = torch.from_numpy(words).flatten().to(self.device)
        sums = layers.new_zeros(sum(n_words) + 1, layers.shape[1]).index_add(0, target, layers)
        counts = torch.bincount(target, minlength=len(sums)).clamp(min=1)
        return (sums / counts[:, None])[:-1]

    def batches(self, sentences: list[list[str]]) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Sentences of similar length: their indices, and the layers of their words."""
        pieces = Pieces(sentences, self.tokenizer)
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        chosen: list[int] = []
        batch: list[tuple[np.ndarray, np.ndarray]] = []
        longest = 0
        for i in order:
            each = pieces.of(sentences[i])
            longest = max(longest, len(each[0]))
            if batch and longest * (len(batch) + 1) > BATCH_PIECES[self.device.type]:
                yield chosen, self.read(batch, [len(sentences[j]) for j in chosen])
                chosen, batch, longest = [], [], len(each[0])
            chosen.append(i)
            batch.append(each)
        if batch:
            yield chosen, self.read(batch, [len(sentences[j]) for j in chosen])


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


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("shards", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=4, help="sentences, of which one is read")
    arguments = parser.parse_args()
    out, teacher = arguments.out, Teacher(arguments.model)
    out.mkdir(parents=True, exist_ok=True)
    sentences = list(read_sentences(arguments.shards, arguments.every))
    starts = list(accumulate(map(len, sentences), initial=0))
    file = out / "map.npz"
    if not file.exists():
        ends = accumulate(map(len, sentences))
        sample = [words for words, end in zip(sentences, ends, strict=True) if end < MAP_WORDS]
        layers = torch.cat([layers for _, layers in teacher.batches(sample)])
        np.savez(file, **principal_components(layers))
    arrays = {name: torch.from_numpy(a).to(teacher.device) for name, a in np.load(file).items()}
    vectors = np.lib.format.open_memmap(out / "vectors.npy", "w+", "float16", (starts[-1], SIZE))
    for chosen, layers in teacher.batches(sentences):
        rows = reduce(layers, arrays)
        for i, start in zip(
            chosen, accumulate((len(sentences[i]) for i in chosen), initial=0), strict=False
        ):
            vectors[starts[i] : starts[i + 1]] = rows[start : start + len(sentences[i])]
    vectors.flush()
    with (out / "vectors.tokens.jsonl").open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"tokens": words}) + "\n" for words in sentences)


if __name__ == "__main__":
    main()
