"""The biLM's predictions for a batch, and their losses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from ..bilm.model import BiLM
from ..bilm.sentence_batches import to_device
from ..util.threads import threads_for
from .encoded_sentences import SentenceBatch
from .softmax import SoftmaxHead

MOST_LOGITS = 2**22  # computed at once: 16 MiB, which the allocator reuses


class HiddenStates(NamedTuple):
    """The inputs of the head, and the words to predict from them.

    Attributes:
        hidden: ``(2M, P)``, those of the forward language model first. A sentence has one
            prediction fewer than tokens.
        targets: ``(2M,)``, indices in the vocabulary.
        layers: ``(L + 1, N, 2P)``, the layers of all tokens.
    """

    hidden: torch.Tensor
    targets: torch.Tensor
    layers: torch.Tensor


def hidden_states(model: BiLM, batch: SentenceBatch) -> HiddenStates:
    """Read a batch: the forward language model predicts each token but a sentence's first from the
    token before it, and the backward one each token but the last from the token after it.

    Args:
        model: the biLM.
        batch: sentences, on its device.
    """
    types = model.encode_ids(batch.ids)
    n_sentences = len(batch.tokens) / max(batch.lengths)  # in a time step, on average
    with threads_for(n_sentences * model.config.layer_size, model.n_threads):
        layers, _ = model(types, batch.tokens, batch.lengths)
    forward, backward = layers[-1].chunk(2, dim=1)  # (N, P) each
    ends = np.cumsum(batch.lengths)
    predicts = np.ones(len(batch.tokens), dtype=bool)
    predicts[ends - 1] = False
    before = to_device(np.flatnonzero(predicts), model.device)  # each token but the last
    after = before + 1  # each token but the first
    hidden = torch.cat([forward[before], backward[after]])
    return HiddenStates(hidden, batch.targets[torch.cat([after, before])], layers)


def losses(head: SoftmaxHead, states: HiddenStates) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropies in nats of the full softmax, forward and backward ``(M,)``."""
    rows = max(1, MOST_LOGITS // len(head.weight))
    parts = zip(states.hidden.split(rows), states.targets.split(rows), strict=True)
    with threads_for(min(rows, len(states.targets)) * head.weight.numel()):
        nats = torch.cat([F.cross_entropy(head(h), t, reduction="none") for h, t in parts])
    forward, backward = nats.chunk(2)
    return forward, backward
