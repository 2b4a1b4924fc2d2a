"""A biLM with its head as a language model: next words, substitutes and surprisal.

The forward language model gives ``p(w | left)``, the backward one ``p(w | right)``. If left and
right are independent given the word between them, then

    p(w | left, right)  ∝  p(left | w) p(right | w) p(w)  ∝  p(w | left) p(w | right) / p(w):

a product of two experts. The plain product would count twice how frequent a word is anyway.
``p(w)`` is Zipf's law over the vocabulary, which is ordered by frequency (the same law the sampled
softmax draws from).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from ..bilm.model import BiLM
from ..util.settings import shorten
from ..util.threads import threads_for
from ..weights.find import WeightsLike, find_weights
from ..weights.layout import Card
from ..weights.native import save_bilm
from .encoded_sentences import EncodedSentences
from .forward import hidden_states, losses
from .head import load_head, save_head
from .softmax import SoftmaxHead, log_uniform
from .vocabulary import SPECIALS, Vocabulary

BATCH_WORDS = 4096  # tokens read at once
BLANK = "___"  # stands for a word to predict; the biLM does not see it

Guesses = list[tuple[str, float]]  # words and their probabilities, the likeliest first


class Filled(NamedTuple):
    """The likeliest words for a blank: from the left, from the right, and from both."""

    forward: Guesses
    backward: Guesses
    both: Guesses


class Surprisal(NamedTuple):
    """The surprisal of each word in a sentence, in bits, float32.

    Attributes:
        forward: ``(n_words,)``, ``-log2 p(w | left)``.
        backward: ``(n_words,)``, ``-log2 p(w | right)``.
        known: ``(n_words,)``, whether the word is in the vocabulary. For the head, all other words
            are ``<UNK>``: the surprisal of *some* unknown word, a lower bound for this one.
    """

    forward: np.ndarray
    backward: np.ndarray
    known: np.ndarray


class LanguageModel:
    """Predicts and scores words. Sentences are lists of words, without boundaries.

    The results for a sentence depend on that sentence alone, not on the rest of a batch (up to
    rounding, about 1e-5 nats on a CPU).

    Args:
        model: a biLM in evaluation mode.
        head: its head.
        vocab: the V words of the head.
        card: the card of the weights.
    """

    def __init__(self, model: BiLM, head: SoftmaxHead, vocab: Vocabulary, card: Card | None = None):
        self.model, self.head, self.vocab = model, head, vocab
        self.card = card or Card()
        self.log_prior = torch.from_numpy(log_uniform(len(vocab))).float().to(model.device)
        # Punctuation marks and special words do not fill a blank.
        no_word = [i < len(SPECIALS) or not w[:1].isalnum() for i, w in enumerate(vocab.words)]
        self.no_word = torch.tensor(no_word, device=model.device)

    @classmethod
    @threads_for(0)
    def load(cls, weights: WeightsLike) -> LanguageModel:
        """Load a biLM with its head.

        Args:
            weights: see `find_weights`.

        Raises:
            ValueError: there are no such weights, they are damaged, or they have no head.
        """
        source = find_weights(weights)
        head, vocab = load_head(source)  # an error before the biLM is loaded
        return cls(source.load(), head, vocab, source.card())

    def save(self, path: str | Path) -> None:
        """Write what `load` reads into a directory, which is created if it is missing."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        self.model.initial_state()  # computes a warm state, which is saved too
        save_bilm(self.model, path, self.card)
        save_head(self.head, self.vocab, path)

    def next_words(self, words: Sequence[str], n: int = 10) -> Guesses:
        """The likeliest words after some words, by the forward language model.

        Args:
            words: the beginning of a sentence; may be empty.
            n: the number of words.

        Returns:
            Words with ``p(w | words)`` by the full softmax. ``<UNK>`` and the end of the sentence
            are left out, but have some of the probability.

        Raises:
            ValueError: ``words`` is a string, or n is below 1.
        """
        forward, _ = self._hidden([*check_sentence(words, n), BLANK])
        return self._following(forward[-1:], n)

    def previous_words(self, words: Sequence[str], n: int = 10) -> Guesses:
        """The likeliest words before some words, by the backward language model.

        Args:
            words: the end of a sentence; may be empty.
            n: the number of words.

        Returns:
            Words with ``p(w | words)``, see `next_words`, also for errors.
        """
        _, backward = self._hidden([BLANK, *check_sentence(words, n)])
        return self._following(backward[:1], n)

    def substitutes(self, words: Sequence[str], position: int, n: int = 10) -> Guesses:
        """The likeliest words at a position in a sentence, given the words on both sides.

        Their probability is ``p(w | left) p(w | right) / p(w)``, the product of the two language
        models over Zipf's law (see this module), normalized over all words in the vocabulary that
        begin with a letter or digit.

        Args:
            words: a sentence.
            position: the index of the word to replace; the word itself does not matter.
            n: the number of words.

        Returns:
            Words with their probabilities.

        Raises:
            ValueError: ``words`` is a string, there is no such position, or n is below 1.
        """
        return self.fill(words, position, n).both

    @torch.no_grad()
    @threads_for(0)
    def fill(self, words: Sequence[str], position: int, n: int = 10) -> Filled:
        """The likeliest words at a position, by each language model and by both together.

        Probabilities are normalized over the words that begin with a letter or digit. Arguments
        and errors: see `substitutes`.
        """
        words = check_sentence(words, n)
        if not 0 <= position < len(words):
            raise ValueError(
                f"position is {position}, but the sentence has {len(words)} words; give an index "
                f"from 0 up to the last word's."
            )
        words[position] = BLANK  # the word must not tell whether the sentence is in capitals
        hidden = torch.stack([side[position] for side in self._hidden(words)])
        with threads_for(self.head.weight.numel()):
            forward, backward = self.head(hidden).log_softmax(dim=1)
        rows = torch.stack([forward, backward, forward + backward - self.log_prior])
        allowed = rows.masked_fill(self.no_word, -torch.inf).log_softmax(dim=1)
        return Filled(*(self._guesses(row, n) for row in allowed))

    def surprisal(self, words: Sequence[str]) -> Surprisal:
        """Compute the surprisal of each word in a sentence, in bits.

        Raises:
            ValueError: ``words`` is a string.
        """
        return self.surprisals([words])[0]

    @torch.no_grad()
    @threads_for(0)
    def surprisals(self, sentences: Sequence[Sequence[str]]) -> list[Surprisal]:
        """Compute the surprisal of each word in many sentences, in bits, in batches.

        Args:
            sentences: lists of words, which may be empty.

        Returns:
            A `Surprisal` for each sentence.

        Raises:
            ValueError: a sentence is a string.
        """
        empty = np.zeros(0, dtype=np.float32)
        results = [Surprisal(empty, empty, empty.astype(bool))] * len(sentences)
        filled = [i for i, words in enumerate(sentences) if check_sentence(words)]
        text = self._encode([sentences[i] for i in filled])
        for chosen in text.plan(BATCH_WORDS, None):
            batch = text.batch(chosen)
            states = hidden_states(self.model, batch.to(self.model.device))
            sizes = [length - 1 for length in batch.lengths]
            bits = [(nats / math.log(2)).cpu().split(sizes) for nats in losses(self.head, states)]
            targets = batch.targets.split(batch.lengths)
            # The last forward one is for the sentence's end, the first backward one for its start.
            for i, forward, backward, words in zip(chosen, *bits, targets, strict=True):
                known = (words[1:-1] >= len(SPECIALS)).numpy()
                results[filled[i]] = Surprisal(forward[:-1].numpy(), backward[1:].numpy(), known)
        return results

    @torch.no_grad()
    @threads_for(0)
    def _hidden(self, words: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """The inputs of the head for each word, forward and backward, ``(n_words, P)``."""
        batch = self._encode([words]).batch(np.zeros(1, dtype=np.int64))
        states = hidden_states(self.model, batch.to(self.model.device))
        forward, backward = states.hidden.chunk(2)
        return forward[:-1], backward[1:]  # without the sentence's end and start

    def _encode(self, sentences: Sequence[Sequence[str]]) -> EncodedSentences:
        return EncodedSentences(sentences, self.vocab, None, self.model.char_cnn.to_ids)

    @torch.no_grad()
    @threads_for(0)
    def _following(self, hidden: torch.Tensor, n: int) -> Guesses:
        row = self.head(hidden).log_softmax(dim=1)[0]
        row[: len(SPECIALS)] = -torch.inf
        return self._guesses(row, n)

    def _guesses(self, row: torch.Tensor, n: int) -> Guesses:
        """The n likeliest words, from log-probabilities ``(V,)``."""
        top = row.exp().topk(min(n, len(row)))
        pairs = zip(top.values.tolist(), top.indices.tolist(), strict=True)
        return [(self.vocab.words[i], p) for p, i in pairs if p > 0.0]


def check_sentence(words: Sequence[str], n: int = 1) -> list[str]:
    """Return a sentence as a list; raise a ValueError if it is a string, or n is below 1."""
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise ValueError(
            f"A sentence is a list of words, as in [token.text for token in doc]; found "
            f"{shorten(words)}."
        )
    if n < 1:
        raise ValueError(f"n is {n}; give at least 1.")
    return list(words)
