"""The modules that the models share."""

from __future__ import annotations

import torch
from paper_tasks.layers import BiLSTM
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def test_bilstm_reads_as_one_over_packed_sequences() -> None:
    """PyTorch's own, with the same weights: states and gradients."""
    torch.manual_seed(0)
    ours, lengths = BiLSTM(5, 4, depth=2), torch.tensor([3, 7, 1])
    theirs = nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True)
    names = [f"_l{layer}{direction}" for layer in (0, 1) for direction in ("", "_reverse")]
    for name, lstm in zip(names, ours.layers, strict=True):
        for part, value in lstm.named_parameters():
            getattr(theirs, part.removesuffix("_l0") + name).data.copy_(value)
    rows = torch.randn(3, 7, 5)
    mine, other = rows.clone().requires_grad_(), rows.clone().requires_grad_()
    states = ours(mine, torch.arange(7) < lengths[:, None])
    packed = pack_padded_sequence(other, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    torch.testing.assert_close(states, expected)
    weights = torch.randn(states.shape)
    (states * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(mine.grad, other.grad)
    torch.testing.assert_close(ours.layers[1].weight_hh_l0.grad, theirs.weight_hh_l0_reverse.grad)
