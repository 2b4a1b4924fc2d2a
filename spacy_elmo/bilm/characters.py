"""Words to byte ids, as the published models define them (REFERENCE: 258 … 260, all + 1)."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from .config import BiLMConfig

# Ids after the shift by one that leaves 0 free for "no token here".
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, PADDING = 257, 258, 259, 260, 261
N_CHARACTERS = 261  # rows of the embedding: ids 1 .. 261

CAPITALS = 3  # words in capitals of a sentence that is; fewer may be abbreviations
BOS, EOS = "<S>", "</S>"


def encode_word(word: str, max_characters: int = 50) -> list[int]:
    """One word's ids without padding: begin-word, its UTF-8 bytes, end-word.

    The literal words ``<S>`` and ``</S>`` become the sentence boundaries. Lone surrogates
    are dropped, and the word is truncated to ``max_characters - 2`` bytes.
    """
    if word == BOS:
        return [WORD_START, SENTENCE_START, WORD_END]
    if word == EOS:
        return [WORD_START, SENTENCE_END, WORD_END]
    encoded = word.encode("utf-8", "ignore")[: max_characters - 2]
    return [WORD_START, *(byte + 1 for byte in encoded), WORD_END]


def is_truncated(word: str, max_characters: int = 50) -> bool:
    """Tell whether `encode_word` leaves bytes of this word out."""
    return len(word.encode("utf-8", "ignore")) > max_characters - 2


@dataclass(eq=False)
class CharacterIds:
    """The ids of many words, as the char-CNN of a biLM takes them.

    Padding takes part in the CNN's maximum over positions, so that one window of padding alone
    must stay for the widest filter: ``min(max_characters, length + max_width)`` positions give a
    word the same vector as all ``max_characters`` of them.

    Args:
        max_width: the widest filter of the char-CNN.
        max_characters: positions of a word at most, its markers included.
        form: the Unicode normalization form in which words are read; None for as they are.
        lower_capitals: see `BiLMConfig`.
    """

    max_width: int
    max_characters: int = 50
    form: Any = None
    lower_capitals: bool = False
    padding = PADDING

    @classmethod
    def of(cls, config: BiLMConfig) -> CharacterIds:
        """The ids that a char-CNN of bytes takes, of a biLM's config."""
        sizes = config.max_width, config.max_characters_per_token
        return cls(*sizes, config.unicode_normalization, config.lower_capitals)

    def read(self, words: Sequence[str]) -> Sequence[str]:
        """The words of a sentence as they are read; vocabularies and statistics have them so."""
        if self.lower_capitals and "".join(words).isupper():
            if sum(map(str.isupper, words)) >= CAPITALS:
                words = [word if word in (BOS, EOS) else word.lower() for word in words]
        if self.form is None:
            return words
        return [w if w.isascii() else unicodedata.normalize(self.form, w) for w in words]

    def __call__(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids ``(n_words, n_positions)`` of words as `read` gives them, and how many positions each
        word needs ``(n_words,)``."""
        encoded = [encode_word(word, self.max_characters) for word in words]
        lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
        sizes = self.sizes(lengths)
        ids = np.full((len(words), sizes.max(initial=0)), PADDING, dtype=np.int16)
        filled = np.arange(ids.shape[1]) < lengths[:, np.newaxis]
        ids[filled] = np.fromiter(chain.from_iterable(encoded), dtype=np.int16)
        return ids, sizes

    def sizes(self, lengths: Any) -> Any:
        """Positions that words of some lengths need; both an array or a tensor."""
        return (lengths + self.max_width).clip(max=self.max_characters)
