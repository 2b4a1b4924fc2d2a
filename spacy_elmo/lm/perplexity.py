"""Held-out perplexity of a biLM and its head, by the full softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from ..bilm.lstm_state import State
from ..bilm.model import BiLM
from ..bilm.packing import to_device
from ..util.threads import threads_for
from .encoded_sentences import Batch, EncodedSentences
from .softmax import SoftmaxHead
from .stream_state import StreamState
from .vocabulary import UNKNOWN

LOGITS_AT_ONCE = 2**22  # 16 MiB: memory of this size is used again, not asked for anew


@dataclass
class Perplexity:
    """How well a text was predicted.

    Attributes:
        forward, backward: ``exp`` of the mean loss in nats of each direction. Each sentence's
            end (backward: its start) is predicted too and counts as a word.
        n_predicted: predictions of each direction: words, and one end of each sentence.
        n_words: words alone.
        n_unknown: how many of these were ``<UNK>``.
    """

    forward: float
    backward: float
    n_predicted: int
    n_words: int
    n_unknown: int

    @property
    def mean(self) -> float:
        """``exp`` of the mean loss of both directions."""
        return math.sqrt(self.forward * self.backward)

    @property
    def unknown_rate(self) -> float:
        """Share of the words that are ``<UNK>``."""
        return self.n_unknown / self.n_words


class HiddenStates(NamedTuple):
    """What the head of each direction reads, and what it is to predict from it.

    Attributes:
        hidden_f, hidden_b: ``(M, P)``; each sentence has one prediction fewer than tokens.
        targets_f, targets_b: ``(M,)`` indices in the vocabulary.
        state: of each direction at the end of each sentence.
        layers: ``(L + 1, N, 2P)`` of all tokens.
    """

    hidden_f: torch.Tensor
    targets_f: torch.Tensor
    hidden_b: torch.Tensor
    targets_b: torch.Tensor
    state: State
    layers: torch.Tensor


def hidden_states(model: BiLM, batch: Batch, state: State | None = None) -> HiddenStates:
    """The top layer of a batch and the words to predict from it, for both directions.

    The forward direction predicts every token but the first of a sentence from the one before
    it, the backward direction every token but the last from the one after it.

    Args:
        model: the biLM.
        batch: sentences.
        state: what they start from; the biLM's own initial state if None.
    """
    encode, _ = model.parts()
    n_sentences = len(batch.tokens) / max(batch.lengths)  # of a step, in the mean
    with threads_for(n_sentences * model.layer_size, model.n_threads):
        layers, state = model(encode(batch.ids), batch.tokens, batch.lengths, state)
    forward, backward = layers[-1].chunk(2, dim=1)  # (N, P) each
    ends = np.cumsum(batch.lengths)
    predicts = np.ones(len(batch.tokens), dtype=bool)
    predicts[ends - 1] = False
    before = to_device(np.flatnonzero(predicts), model.device)  # all but each last token
    after = before + 1  # all but each first one
    targets = batch.targets
    hidden = forward[before], targets[after], backward[after], targets[before]
    return HiddenStates(*hidden, state, layers)


def losses(head: SoftmaxHead, read: HiddenStates) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropies in nats of the full softmax, forward and backward ``(M,)``."""
    rows = max(1, LOGITS_AT_ONCE // len(head.weight))

    def direction(hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        parts = zip(hidden.split(rows), targets.split(rows), strict=True)
        return torch.cat([F.cross_entropy(head(h), t, reduction="none") for h, t in parts])

    with threads_for(min(rows, len(read.targets_f)) * head.weight.numel()):
        return direction(read.hidden_f, read.targets_f), direction(read.hidden_b, read.targets_b)


@threads_for(0)
def evaluate(
    model: BiLM,
    head: SoftmaxHead,
    block: EncodedSentences,
    batch_words: int = 4096,
    max_words: int = 0,
    state: State | StreamState | None = None,
    on_batch: Callable[[int], object] = lambda n_words: None,
) -> Perplexity:
    """Perplexity of held-out sentences.

    Args:
        model: the biLM; it is put into evaluation mode and back into its mode at the end.
        head: its softmax.
        block: the sentences.
        batch_words: tokens read at once.
        max_words: read no more than about this many tokens, a fixed sample; 0 for all.
        state: what each sentence starts from, with B = 1; None for the biLM's own initial state;
            or `StreamState`: the sentences are read in random order, each from the state that
            the one before it in its stream ended in, and ``batch_words`` is not used.
        on_batch: called after each batch with its number of words, for a progress bar.

    Returns:
        The perplexities; infinite or NaN where the losses are.
    """
    if max_words:
        batch_words = min(batch_words, max_words)
    if isinstance(state, StreamState):
        plan = block.streams(len(state), np.random.default_rng(0))
    else:
        plan = block.plan(batch_words, np.random.default_rng(0) if max_words else None)
    if max_words:
        sizes = np.cumsum([block.lengths[sentences].sum() for sentences in plan])
        plan = plan[: max(1, int((sizes <= max_words).sum()))]
    forward = backward = 0.0
    n_predicted = n_words = n_unknown = 0
    with model.evaluating():
        for sentences in plan:
            batch = block.batch(sentences).to(model.device)
            if isinstance(state, StreamState):
                read = hidden_states(model, batch, state.first(len(batch.lengths)))
                state.update(read.state)
            else:
                read = hidden_states(model, batch, state)
            nats = losses(head, read)
            forward += float(nats[0].sum())
            backward += float(nats[1].sum())
            n_predicted += len(read.targets_f)
            n_words += batch.n_words
            n_unknown += int((read.targets_f == UNKNOWN).sum())
            on_batch(batch.n_words)
    with np.errstate(over="ignore"):
        means = np.exp([forward / n_predicted, backward / n_predicted])
    return Perplexity(float(means[0]), float(means[1]), n_predicted, n_words, n_unknown)
