from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.softmax import restrict_head
from spacy_elmo.lm.vocabulary import UNKNOWN

from ..pretraining.helpers import log_probabilities, make_block, make_model, make_vocab, prose

VOCAB = make_vocab(sorted({word for words in prose() for word in words}))


def test_against_the_definition() -> None:
    """The probability of <UNK> is the sum of those of the words left out, and its own."""
    model, head = make_model(len(VOCAB))
    torch.nn.init.normal_(head.weight)
    known = VOCAB.words[:2:-3]  # in another order, without the special ones
    merged, vocab = restrict_head(head, VOCAB, known, "The file")
    assert vocab.words == [*VOCAB.words[:3], *(word for word in VOCAB.words[3:] if word in known)]
    losses = []
    others = [i for i, word in enumerate(VOCAB.words) if word not in vocab.ids]
    for words in prose():
        for place, row in enumerate(np.exp(log_probabilities(model, head, [*words, "x"])[0])):
            target = [*words, "</S>"][place]
            share = row[VOCAB[target]]
            if target not in vocab.ids:
                share = row[[UNKNOWN, *others]].sum()
            losses.append(-math.log(share))
    result = evaluate(model, merged, make_block(prose(), vocab))
    assert result.forward == pytest.approx(math.exp(np.mean(losses)), rel=1e-5)
    assert result.unknown_rate > 0.5


def test_all_words_change_nothing() -> None:
    model, head = make_model(len(VOCAB))
    result = evaluate(model, head, make_block(prose(), VOCAB))
    merged, vocab = restrict_head(head, VOCAB, reversed(VOCAB.words), "The file")
    again = evaluate(model, merged, make_block(prose(), vocab))
    assert again.mean == pytest.approx(result.mean, rel=1e-5)
    assert again.n_unknown == 0


def test_failures() -> None:
    _, head = make_model(len(VOCAB))
    said = r"The file x has 2 words that .*: \['Zug', 'Bahn'\]\. Give only"
    with pytest.raises(ValueError, match=said):
        restrict_head(head, VOCAB, ["Zug", "the", "Bahn", "Zug"], "The file x")
    with pytest.raises(ValueError, match=r"7 words .*'0', "):
        restrict_head(head, VOCAB, map(str, range(7)), "The file x")
    for words in ([], ["<S>", "<UNK>"]):
        with pytest.raises(ValueError, match="The file x has no words"):
            restrict_head(head, VOCAB, words, "The file x")
