"""The state that sentences start from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import N_STREAMS, BiLM, State

from .helpers import max_difference, run_bilm

CONFIG = BiLMConfig(
    filters=((1, 4), (3, 8)), projection_dim=6, dim=12, n_layers=2, initial_state="warm"
)
SENTENCES = [["some", "words"], ["more", "of", "them", "here"], ["one"], []]


@pytest.fixture
def model() -> BiLM:
    torch.manual_seed(0)
    model = BiLM(CONFIG, dropout=0.5).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.6, 0.6)
    return model.requires_grad_(False)


def same(one: State, other: State) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def close(one: State, other: State) -> bool:
    return all(torch.allclose(a, b, atol=1e-6) for a, b in zip(one, other, strict=True))


def test_one_sentence_leaves_its_last_state(model: BiLM) -> None:
    _, expected = run_bilm(model, [SENTENCES[1]])
    assert close(model.compute_warm_state([SENTENCES[1]]), expected)


def test_streams_carry_their_state_and_their_mean_is_taken(model: BiLM) -> None:
    sentences = [["word", str(i), "!"] for i in range(2 * N_STREAMS + 3)]
    ends = []
    for stream in range(N_STREAMS):
        state = None
        for words in sentences[stream::N_STREAMS]:
            _, state = run_bilm(model, [words], state)
        assert state is not None
        ends.append(state)
    h, c = (torch.cat(parts, dim=2).mean(dim=2, keepdim=True) for parts in zip(*ends, strict=True))
    assert close(model.compute_warm_state(sentences), (h, c))


def test_nothing_else_matters(model: BiLM) -> None:
    expected = model.compute_warm_state()
    model.read(SENTENCES)
    assert same(model.compute_warm_state(), expected)
    assert same(model.train().compute_warm_state(), expected)  # its dropout is off meanwhile
    assert model.training
    with torch.autocast("cpu", torch.bfloat16):  # it is saved with the weights
        assert same(model.compute_warm_state(), expected)
    assert not any(part.requires_grad for part in model.requires_grad_(True).compute_warm_state())
    assert expected[0].shape == (2, 2, 1, 6) and expected[1].shape == (2, 2, 1, 12)


def test_a_model_starts_from_what_its_config_says(model: BiLM) -> None:
    warm, _ = model.read(SENTENCES)
    h, c = (s.expand(-1, -1, len(SENTENCES), -1) for s in model.compute_warm_state())
    expected, _ = run_bilm(model, SENTENCES, (h, c))
    assert max(map(max_difference, map(torch.Tensor.numpy, warm), expected)) <= 1e-6
    alone = [model.read([words])[0][0] for words in SENTENCES]
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(alone, warm, strict=True))

    model.config = replace(CONFIG, initial_state="zero")
    cold, _ = model.read(SENTENCES)
    expected, _ = run_bilm(model, SENTENCES)
    assert max(map(max_difference, map(torch.Tensor.numpy, cold), expected)) <= 1e-6
    assert np.abs(warm[0].numpy() - cold[0].numpy()).max() > 0.01
    assert same(model.initial_state(), model.initial_state("zero"))
