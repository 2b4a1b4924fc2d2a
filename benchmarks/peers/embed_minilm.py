"""Word vectors of all-MiniLM-L6-v2; see `embed.py`."""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from make_minilm import MODEL
from transformers import AutoModel, AutoTokenizer

LAYERS = slice(0, None, 2)  # 0, 2, 4 and 6
BATCH = 32  # sentences


def word_vectors(states: torch.Tensor, words: list[int | None], n_words: int) -> torch.Tensor:
    """Means over the pieces of each word, ``(n_layers, n_words, width)``; zeros for words that
    have none.

    Args:
        states: of the pieces, ``(n_layers, n_pieces, width)``.
        words: index of the word of each piece, None for special ones.
        n_words: of the sentence.
    """
    weights = torch.zeros(n_words, states.shape[1])
    for piece, word in enumerate(words):
        if word is not None:
            weights[word, piece] = 1
    return (weights / weights.sum(dim=1, keepdim=True).clamp(min=1)).to(states) @ states


@torch.inference_mode()
def read(
    model: Any, tokenizer: Any, sentences: list[list[str]], size: int = BATCH, mixed: bool = False
) -> Iterator[tuple[int, torch.Tensor]]:
    """The index and the `word_vectors` of each sentence; those of similar length come together.
    ``mixed``: by products in bfloat16."""
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    for first in range(0, len(order), size):
        chosen = order[first : first + size]
        pieces = tokenizer(
            [sentences[i] for i in chosen],
            is_split_into_words=True,
            padding=True,
            truncation=True,
            return_tensors="pt",
        ).to(model.device)
        with torch.autocast(model.device.type, torch.bfloat16, mixed):
            found = model(**pieces, output_hidden_states=True).hidden_states
        states = torch.stack(found[LAYERS])
        for row, i in enumerate(chosen):
            yield i, word_vectors(states[:, row].float(), pieces.word_ids(row), len(sentences[i]))


def main(file: Path, out: Path) -> None:
    sentences = json.loads(file.read_text("utf-8"))
    starts = np.cumsum([0, *map(len, sentences)])
    with tempfile.TemporaryDirectory() as name:
        zipfile.ZipFile(str(MODEL)).extractall(name)
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModel.from_pretrained(name).eval()
    n_layers = len(range(model.config.num_hidden_layers + 1)[LAYERS])
    shape = (n_layers, int(starts[-1]), model.config.hidden_size)
    layers = np.lib.format.open_memmap(out, "w+", dtype="float16", shape=shape)
    for i, vectors in read(model, tokenizer, sentences):
        layers[:, starts[i] : starts[i + 1]] = vectors.numpy()
    layers.flush()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
