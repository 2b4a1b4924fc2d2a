"""Which sentence of a minimal pair is the likelier one? BLiMP (Warstadt et al. 2020).

A biLM is right about a pair if its head gives the grammatical sentence the higher probability: that
of the words and the end by the forward language model, of the words and the start by the backward
one, and of all these together (summed). The 67 paradigms have 1,000 pairs each; phenomena and
fields are means of their paradigms. Pairs whose two sentences have as many `<UNK>`, whose cost is
the same in both, are scored apart.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from perplexities import LM

from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.forward import hidden_states, losses
from spacy_elmo.lm.vocabulary import UNKNOWN
from spacy_elmo.text.readers import blank_pipeline

BATCH_WORDS = 4096  # tokens read at once
DIRECTIONS = ("forward", "backward", "summed")


def read_pairs(data: Path, share: float = 1.0) -> list[dict[str, Any]]:
    """The pairs, or so many of each paradigm, evenly spread and always the same ones.

    Raises:
        ValueError: the share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"The share of the pairs is {share}; give one above 0 and at most 1.")
    with lzma.open(data / "blimp" / "pairs.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    seen: dict[str, int] = defaultdict(int)
    chosen = []
    for row in rows:
        i = seen[row["UID"]]
        seen[row["UID"]] += 1
        if ceil((i + 1) * share - 1e-9) > ceil(i * share - 1e-9):
            chosen.append(row)
    return chosen


@torch.no_grad()
def score(lm: LM, sentences: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Nats of raw sentences, each a sequence of spaCy's tokens, by the full softmax.

    Returns:
        ``(n, 2)`` nats of the words and an end, forward and backward, and ``(n,)`` numbers of
        ``<UNK>``.
    """
    nlp = blank_pipeline(lm.weights, default="en")
    tokens = [[token.text for token in nlp.make_doc(text)] for text in sentences]
    block = EncodedSentences(tokens, lm.words, None, lm.bilm.char_cnn.to_ids)
    nats, unknown = np.zeros((len(tokens), 2)), np.zeros(len(tokens), dtype=int)
    for chosen in block.plan(BATCH_WORDS):
        batch = block.batch(chosen)
        starts = np.cumsum([0, *batch.lengths[:-1]])
        unknown[chosen] = np.add.reduceat((batch.targets == UNKNOWN).int().numpy(), starts)
        starts -= np.arange(len(starts))  # there is one prediction fewer than tokens
        for side, each in enumerate(losses(lm.head, hidden_states(lm.bilm, batch))):
            nats[chosen, side] = np.add.reduceat(each.double().numpy(), starts)
    return nats, unknown


def means(right: np.ndarray, rows: list[dict[str, Any]], mask: np.ndarray) -> dict[str, Any]:
    """Percents of pairs that are right, by paradigm, and the means of these.

    Args:
        right: ``(n, 3)`` of bool, by direction.
        rows: the pairs.
        mask: ``(n,)`` those that count.
    """
    paradigms, groups = {}, {}
    names = np.array([row["UID"] for row in rows])
    for row in rows:
        field = row["field"].replace("/", "_")  # one of them is spelt in both ways
        groups.setdefault(row["UID"], (row["linguistics_term"], field))
    for name in groups:
        if (chosen := mask & (names == name)).any():
            paradigms[name] = right[chosen].mean(axis=0)
    n = {name: int((mask & (names == name)).sum()) for name in paradigms}

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(DIRECTIONS, (100 * values).tolist(), strict=True))

    def grouped(which: int) -> dict[str, dict[str, float]]:
        found = defaultdict(list)
        for name, value in paradigms.items():
            found[groups[name][which]].append(value)
        return {name: named(np.mean(each, axis=0)) for name, each in sorted(found.items())}

    variance = sum(p * (1 - p) / n[name] for name, p in paradigms.items())
    return {
        "pairs": int(mask.sum()),
        "mean": named(np.mean(list(paradigms.values()), axis=0)),
        "interval": named(1.96 * variance**0.5 / len(paradigms)),
        "fields": grouped(1),
        "phenomena": grouped(0),
        "paradigms": {name: {**named(p), "pairs": n[name]} for name, p in paradigms.items()},
    }


def measure(lm: LM, data: Path, share: float = 1.0) -> dict[str, Any]:
    """Percents of BLiMP's pairs that a biLM with a head is right about.

    Args:
        lm: with the head.
        data: folder with ``blimp/pairs.jsonl.xz``.
        share: see `read_pairs`.

    Returns:
        For "all" pairs and those of "equal `<UNK>`": the numbers of pairs, and by direction (see
        `DIRECTIONS`) the "mean" of the paradigms, half the width of its 95 % "interval", and the
        means of "fields", "phenomena" and "paradigms".
    """
    rows = read_pairs(data, share)
    places = {row[side]: 0 for row in rows for side in ("sentence_good", "sentence_bad")}
    places = {sentence: i for i, sentence in enumerate(places)}  # each distinct one once
    nats, unknown = score(lm, list(places))
    nats = np.column_stack([nats, nats.sum(axis=1)])
    good, bad = (
        np.array([places[row[side]] for row in rows]) for side in ("sentence_good", "sentence_bad")
    )
    right, equal = nats[good] < nats[bad], unknown[good] == unknown[bad]
    return {
        "all": means(right, rows, np.ones(len(rows), dtype=bool)),
        "equal `<UNK>`": means(right, rows, equal),
    }
