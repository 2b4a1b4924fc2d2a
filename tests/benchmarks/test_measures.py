"""What `evidence.py` measures with, where results are known; test_evidence.py runs all of it."""

from __future__ import annotations

from pathlib import Path

import homonyms
import numpy as np
import perplexities
import pytest
import similarity
import torch

from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.vocabulary import UNKNOWN

from ..pretraining.helpers import log_probabilities, make_block, make_model, make_vocab, prose

KOREAN = Path(__file__).parents[2] / "project" / "weights" / "ko_sm"


def test_homonyms() -> None:
    """The Korean biLM finds more than a random choice, and the token layer does not."""
    found = homonyms.measure(similarity.make_nlp(str(KOREAN)), homonyms.KOREAN)
    n, shares = found["all"]
    assert n == 42 and len(found) == 4 and round(shares["random"]) == 33
    assert shares["`elmo senses`"] > max(shares["random"] + 10, shares["layer 0"])


def test_a_restricted_head() -> None:
    """The probability of <UNK> is the sum of those of the words left out, and its own."""
    every = make_vocab(sorted({word for words in prose() for word in words}))
    model, head = make_model(len(every))
    torch.nn.init.normal_(head.weight)
    known = every.words[:2:-3]  # in another order, without the special ones
    merged = perplexities.RestrictedHead(head, every, known)
    vocab = merged.vocab
    assert vocab.words == [*every.words[:3], *(word for word in every.words[3:] if word in known)]
    others = [i for i, word in enumerate(every.words) if word not in vocab.ids]
    losses = []
    for words in prose():
        rows = np.exp(log_probabilities(model, head, [*words, "x"])[0])
        for target, row in zip([*words, "</S>"], rows, strict=True):
            index = [every[target]] if target in vocab.ids else [UNKNOWN, *others]
            losses.append(-np.log(row[index].sum()))
    result = evaluate(model, merged, make_block(prose(), vocab))
    assert result.forward == pytest.approx(np.exp(np.mean(losses)), rel=1e-5)
    assert result.unknown_rate > 0.5
