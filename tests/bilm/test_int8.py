"""Weights of gates in eight bits: exact float32 values, found again from these."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.int8 import join, round_gates, split
from spacy_elmo.bilm.model import BiLM


@given(arrays(np.float32, (3, 9), elements=st.floats(-8, 8, width=32, allow_subnormal=False)))
def test_rounded_weights_are_numbers_times_a_short_scale(values: np.ndarray) -> None:
    bilm = BiLM(BiLMConfig(((1, 4),), 9, 9))
    with torch.no_grad():
        bilm.lstm[0].weight_ih[0, :3] = torch.from_numpy(values)
    weight = round_gates(bilm).lstm[0].weight_ih.detach()
    numbers, scale = split(weight)
    assert torch.equal(join(numbers, scale), weight)
    normal = scale.numpy()[scale.numpy() >= np.finfo(np.float32).tiny]  # others have fewer bits
    assert not (normal.view(np.uint32) & 0xFF).any()  # 16 significant bits
    found = weight[0, :3].numpy()
    step = np.abs(values).max(axis=1, keepdims=True) / 127
    assert (np.abs(found - values) <= 0.502 * step).all()
    again = round_gates(bilm).lstm[0].weight_ih.detach()
    assert torch.equal(again, weight)


def test_all_rows_are_found_again() -> None:
    bilm = round_gates(BiLM(BiLMConfig(((1, 4),), 64, 5000)))
    with torch.no_grad():
        bilm.lstm[0].weight_ih[0, 0] = 1.9e-43  # its scale has one bit
    for weight in (round_gates(bilm).lstm[0].weight_ih, bilm.lstm[0].weight_hh):
        assert torch.equal(join(*split(weight.detach())), weight)
