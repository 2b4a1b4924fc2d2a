"""The perplexity of a language model on held-out text, by the full softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..bilm.model import BiLM
from ..util.threads import threads_for
from .encoded_sentences import EncodedSentences
from .forward import hidden_states, losses
from .softmax import SoftmaxHead
from .vocabulary import UNKNOWN

N_BATCHES = 8  # in a sample, at least: the sentences in a batch have about the same length


@dataclass
class Perplexity:
    """The perplexity on a text.

    Attributes:
        forward, backward: the ``exp`` of each direction's mean loss in nats. The end of each
            sentence (backward: its start) is predicted too, and counts as a word.
        n_predicted: the number of predictions that each direction makes.
        n_words: the number of words.
        n_unknown: the number of ``<UNK>`` among them.
    """

    forward: float
    backward: float
    n_predicted: int
    n_words: int
    n_unknown: int

    @property
    def mean(self) -> float:
        """The ``exp`` of the mean loss of both directions."""
        return math.sqrt(self.forward * self.backward)

    @property
    def unknown_rate(self) -> float:
        """The share of words that are ``<UNK>``."""
        return self.n_unknown / self.n_words


@threads_for(0)
def evaluate(
    model: BiLM,
    head: SoftmaxHead,
    text: EncodedSentences,
    batch_words: int = 4096,
    max_words: int = 0,
    on_batch: Callable[[int], object] = lambda n_words: None,
) -> Perplexity:
    """Compute the perplexity on held-out sentences.

    Args:
        model: the biLM. It is put into evaluation mode, and back at the end.
        head: its head.
        text: the sentences.
        batch_words: the number of tokens in a batch.
        max_words: read a fixed sample of at most about this many tokens; 0 for all.
        on_batch: called with the number of words in each batch, for a progress bar.

    Returns:
        The perplexities, infinite or NaN if the losses are.
    """
    if max_words:  # in small batches, so that it has sentences of many lengths
        batch_words = max(1, min(batch_words, max_words // N_BATCHES))
    plan = text.plan(batch_words, np.random.default_rng(0) if max_words else None)
    if max_words:
        sizes = np.cumsum([text.lengths[sentences].sum() for sentences in plan])
        plan = plan[: max(1, int((sizes <= max_words).sum()))]
    nats, counts = np.zeros(2), np.zeros(3, dtype=np.int64)
    with model.evaluating():
        for sentences in plan:
            batch = text.batch(sentences).to(model.device)
            states = hidden_states(model, batch)
            nats += [float(direction.sum()) for direction in losses(head, states)]
            n_unknown = int((states.targets[: batch.n_predicted] == UNKNOWN).sum())
            counts += [batch.n_predicted, batch.n_words, n_unknown]
            on_batch(batch.n_words)
    with np.errstate(over="ignore"):
        return Perplexity(*np.exp(nats / counts[0]).tolist(), *counts.tolist())
