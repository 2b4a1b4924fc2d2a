"""Which sentence of a minimal pair is the likelier one? BLiMP (Warstadt et al. 2020).

A biLM is right about a pair if its head gives the grammatical sentence the higher probability: that
of the words and the end by the forward language model, of the words and the start by the backward
one, and of all these together (summed). The 67 paradigms have 1,000 pairs each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from perplexities import LM
from tasks import read_rows

from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.forward import hidden_states, losses
from spacy_elmo.text.readers import blank_pipeline

BATCH_WORDS = 4096  # tokens read at once
DIRECTIONS = ("forward", "backward", "summed")


def read_pairs(data: Path, every: int = 1) -> Iterator[dict[str, Any]]:
    """The pairs, or one in every so many of each paradigm."""
    seen = Counter[str]()
    for row in read_rows(data / "blimp" / "pairs.jsonl.xz"):
        if seen[row["UID"]] % every == 0:
            yield row
        seen[row["UID"]] += 1


@torch.no_grad()
def score(lm: LM, sentences: list[str]) -> np.ndarray:
    """Nats of raw sentences, each a sequence of spaCy's tokens, by the full softmax: ``(n, 3)``, by
    direction (see `DIRECTIONS`)."""
    nlp = blank_pipeline(lm.weights, default="en")
    tokens = [[token.text for token in nlp.make_doc(text)] for text in sentences]
    block = EncodedSentences(tokens, lm.words, None, lm.bilm.char_cnn.to_ids)
    nats = np.zeros((len(tokens), 2))
    for chosen in block.plan(BATCH_WORDS):
        batch = block.batch(chosen)
        starts = np.cumsum([0, *batch.lengths[:-1]])
        starts -= np.arange(len(starts))  # there is one prediction fewer than tokens
        for side, each in enumerate(losses(lm.head, hidden_states(lm.bilm, batch))):
            nats[chosen, side] = np.add.reduceat(each.double().numpy(), starts)
    return np.column_stack([nats, nats.sum(axis=1)])


def measure(lm: LM, data: Path, every: int = 1) -> dict[str, Any]:
    """Percents of BLiMP's pairs that a biLM with a head is right about.

    Args:
        lm: with the head.
        data: folder with ``blimp/pairs.jsonl.xz``.
        every: see `read_pairs`.

    Returns:
        For "all" pairs: their number, as "pairs", and by direction those of each of the
        "paradigms", and their "mean".
    """
    rows, sides = list(read_pairs(data, every)), ("sentence_good", "sentence_bad")
    sentences = list(dict.fromkeys(row[side] for row in rows for side in sides))
    nats = dict(zip(sentences, score(lm, sentences), strict=True))
    right: dict[str, list[np.ndarray]] = {}
    for row in rows:
        good, bad = (nats[row[side]] for side in sides)
        right.setdefault(row["UID"], []).append(good < bad)
    paradigms = {name: 100 * np.mean(each, axis=0) for name, each in right.items()}

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(DIRECTIONS, values.tolist(), strict=True))

    mean = named(np.mean(list(paradigms.values()), axis=0))
    found = {"pairs": len(rows), "mean": mean}
    return {"all": {**found, "paradigms": {name: named(p) for name, p in paradigms.items()}}}
