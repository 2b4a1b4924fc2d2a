"""What a biLM with its head expects in a place, from the words on its left and on its right.

The forward language model knows ``p(w | left)``, the backward one ``p(w | right)``. If, given
the word between them, left and right tell nothing more about each other, then

    p(w | left, right)  ∝  p(left | w) p(right | w) p(w)  ∝  p(w | left) p(w | right) / p(w):

the plain product would count twice how frequent a word is anyway. ``p(w)`` is Zipf's law over the
vocabulary, which is ordered by frequency (the same law the sampled softmax draws from).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from ..bilm.characters import BOS, EOS
from ..bilm.model import BiLM
from .softmax import SoftmaxHead, log_uniform
from .vocab import SPECIALS, UNKNOWN, Vocabulary

PLACES_AT_ONCE = 128  # bounds memory: so many rows as wide as the vocabulary

Guesses = list[tuple[str, float]]  # words and their probabilities, the likeliest first


class Expected(NamedTuple):
    """Log-probabilities ``(M, V)`` of all words in M places; special ones have -inf.

    Attributes:
        forward: given what is on the left.
        backward: given what is on the right.
        both: given both.
    """

    forward: torch.Tensor
    backward: torch.Tensor
    both: torch.Tensor


class Filled(NamedTuple):
    """Guesses for a blank, from the left, from the right, and from both."""

    forward: Guesses
    backward: Guesses
    both: Guesses


class Surprise(NamedTuple):
    """How unexpected a word is where it stands.

    Attributes:
        place: its index in the sentence.
        bits: ``-log2 p(w | left, right)``.
        guesses: what was expected there.
    """

    place: int
    bits: float
    guesses: Guesses


class FillIn:
    """Fills blanks in sentences and weighs the words that stand there.

    Args:
        model: a biLM.
        head: its softmax.
        vocab: the words of the head.
    """

    def __init__(self, model: BiLM, head: SoftmaxHead, vocab: Vocabulary):
        self.model, self.head, self.vocab = model, head, vocab
        self.log_prior = torch.from_numpy(log_uniform(len(vocab))).float().to(model.device)
        # A blank stands for a word: punctuation marks and special words are no answer to it.
        self.no_word = torch.tensor([not word[:1].isalnum() for word in vocab.words])
        self.no_word[: len(SPECIALS)] = True
        self.no_word = self.no_word.to(model.device)

    @torch.no_grad()
    def hidden(self, words: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """For each word what each direction has read before it comes to it, ``(n_words, P)``."""
        rows = {word: row for row, word in enumerate(dict.fromkeys([BOS, *words, EOS]))}
        tokens = torch.tensor([rows[word] for word in (BOS, *words, EOS)])
        types = self.model.encode(list(rows))
        layers, _ = self.model(types, tokens.to(self.model.device), [len(tokens)])
        forward, backward = layers[-1].chunk(2, dim=1)  # (n_words + 2, P) each
        return forward[:-2], backward[2:]

    @torch.no_grad()
    def expected(self, forward: torch.Tensor, backward: torch.Tensor) -> Expected:
        """What is expected in M places, from the rows ``(M, P)`` of `hidden`."""
        f, b = self._log_probs(forward), self._log_probs(backward)
        return Expected(f, b, (f + b - self.log_prior).log_softmax(dim=1))

    def fill(self, words: Sequence[str], place: int, n: int = 8) -> Filled:
        """The likeliest words for one place of a sentence, whatever stands there.

        Args:
            words: a sentence without boundaries.
            place: index of the blank.
            n: guesses of each kind.
        """
        forward, backward = self.hidden(words)
        rows = self.expected(forward[place : place + 1], backward[place : place + 1])
        return Filled(
            *(self._guesses(row[0].masked_fill(self.no_word, -torch.inf), n) for row in rows)
        )

    def surprises(self, words: Sequence[str], n: int = 3) -> Iterator[Surprise]:
        """How unexpected each word of a sentence is, given all others; unknown words are left out.

        Args:
            words: a sentence without boundaries.
            n: guesses for each place.
        """
        forward, backward = self.hidden(words)
        for start in range(0, len(words), PLACES_AT_ONCE):
            part = slice(start, start + PLACES_AT_ONCE)
            rows = self.expected(forward[part], backward[part]).both
            for place, (word, row) in enumerate(zip(words[part], rows, strict=True), start):
                if self.vocab[word] != UNKNOWN:
                    bits = -float(row[self.vocab[word]]) / math.log(2)
                    yield Surprise(place, bits, self._guesses(row, n))

    def _log_probs(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = self.head(hidden)
        logits[:, : len(SPECIALS)] = -torch.inf
        return logits.log_softmax(dim=1)

    def _guesses(self, row: torch.Tensor, n: int) -> Guesses:
        top = row.log_softmax(dim=0).exp().topk(min(n, len(row)))
        pairs = zip(top.values.tolist(), top.indices.tolist(), strict=True)
        return [(self.vocab.words[i], p) for p, i in pairs if p > 0.0]
