"""Words to byte ids, as the published models define them (REFERENCE: 258 … 260, all + 1)."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .config import BiLMConfig

BOS, EOS = "<S>", "</S>"
# Bytes that UTF-8 never has: begin-sentence, end-sentence, begin-word, end-word, padding.
BOUNDARIES = {BOS: b"\xfb", EOS: b"\xfc"}
WORD_START, WORD_END, PAD = b"\xfd", b"\xfe", b"\xff"
# The id of each byte, after the shift by one that leaves 0 free for "no token here".
IDS = np.array([*range(1, 0xFC), 257, 258, 259, 260, 261], dtype=np.int16)
PADDING = N_CHARACTERS = 261  # the last id; the embedding has a row for each, from 1

CAPITALS = 3  # words in capitals of a sentence that is; fewer may be abbreviations


def is_truncated(word: str, max_characters: int = 50) -> bool:
    """Tell whether `CharacterIds` leave bytes of this word out."""
    return len(word.encode("utf-8", "ignore")) > max_characters - 2


@dataclass(eq=False)
class CharacterIds:
    """The ids of many words, as the char-CNN of a biLM takes them.

    The CNN's maximum over positions includes padding, so a word keeps one window of padding for the
    widest filter: ``min(max_characters, length + max_width)`` positions give it the same vector as
    all ``max_characters``.

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
        """The ids for a char-CNN of bytes, by a biLM's config."""
        sizes = config.max_width, config.max_characters_per_token
        return cls(*sizes, config.unicode_normalization, config.lower_capitals)

    def read(self, words: Sequence[str]) -> Sequence[str]:
        """The words of a sentence in the form that the biLM reads, as in vocabularies and
        statistics."""
        if self.lower_capitals and "".join(words).isupper():
            if sum(map(str.isupper, words)) >= CAPITALS:
                words = [word if word in (BOS, EOS) else word.lower() for word in words]
        if self.form is None:
            return words
        return [w if w.isascii() else unicodedata.normalize(self.form, w) for w in words]

    def __call__(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids ``(n_words, n_positions)`` of words as `read` gives them, and how many positions each
        word needs ``(n_words,)``.

        The literal words ``<S>`` and ``</S>`` become the sentence boundaries. Lone surrogates are
        dropped, and a word is truncated to ``max_characters - 2`` bytes of UTF-8.
        """
        most = self.max_characters - 2
        inside = (BOUNDARIES.get(word) or word.encode("utf-8", "ignore")[:most] for word in words)
        encoded = [WORD_START + each + WORD_END for each in inside]
        sizes = self.sizes(np.array([len(each) for each in encoded], dtype=np.int64))
        n_positions = sizes.max(initial=0)
        padded = b"".join(each.ljust(n_positions, PAD) for each in encoded)
        return IDS[np.frombuffer(padded, np.uint8).reshape(len(words), n_positions)], sizes

    def sizes(self, lengths: Any) -> Any:
        """The positions that words of these lengths need, as an array or a tensor like them."""
        return (lengths + self.max_width).clip(max=self.max_characters)
