"""Held-out perplexity of a biLM and its head, by the full softmax."""

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


@dataclass
class Perplexity:
    """Perplexity of a text.

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


@threads_for(0)
def evaluate(
    model: BiLM,
    head: SoftmaxHead,
    block: EncodedSentences,
    batch_words: int = 4096,
    max_words: int = 0,
    on_batch: Callable[[int], object] = lambda n_words: None,
) -> Perplexity:
    """Perplexity of held-out sentences.

    Args:
        model: the biLM; it is put into evaluation mode and back into its mode at the end.
        head: its softmax.
        block: the sentences.
        batch_words: tokens read at once.
        max_words: read no more than about this many tokens, a fixed sample; 0 for all.
        on_batch: called after each batch with its number of words, for a progress bar.

    Returns:
        The perplexities; infinite or NaN where the losses are.
    """
    if max_words:
        batch_words = min(batch_words, max_words)
    plan = block.plan(batch_words, np.random.default_rng(0) if max_words else None)
    if max_words:
        sizes = np.cumsum([block.lengths[sentences].sum() for sentences in plan])
        plan = plan[: max(1, int((sizes <= max_words).sum()))]
    nats, counts = np.zeros(2), np.zeros(3, dtype=np.int64)
    with model.evaluating():
        for sentences in plan:
            batch = block.batch(sentences).to(model.device)
            read = hidden_states(model, batch)
            nats += [float(each.sum()) for each in losses(head, read)]
            n_unknown = int((read.targets_f == UNKNOWN).sum())
            counts += [batch.n_predicted, batch.n_words, n_unknown]
            on_batch(batch.n_words)
    with np.errstate(over="ignore"):
        return Perplexity(*np.exp(nats / counts[0]).tolist(), *counts.tolist())
