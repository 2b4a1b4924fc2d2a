"""Words to byte ids, as the published models define them (REFERENCE: 258 … 260, all + 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

# Ids after the shift by one that leaves 0 free for "no token here".
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, PADDING = 257, 258, 259, 260, 261
N_CHARACTERS = 261  # rows of the embedding: ids 1 .. 261

BOS, EOS = "<S>", "</S>"


def encode_word(word: str, max_characters: int = 50) -> list[int]:
    """One word's ids without padding: begin-word, its UTF-8 bytes, end-word.

    The literal words ``<S>`` and ``</S>`` become the sentence boundaries. Lone surrogates
    are dropped; bytes beyond ``max_characters - 2`` are cut off.
    """
    if word == BOS:
        return [WORD_START, SENTENCE_START, WORD_END]
    if word == EOS:
        return [WORD_START, SENTENCE_END, WORD_END]
    encoded = word.encode("utf-8", "ignore")[: max_characters - 2]
    return [WORD_START, *(byte + 1 for byte in encoded), WORD_END]


class CharacterIds:
    """The ids of many words at once, as the char-CNN of a biLM takes them.

    Args:
        max_width: the widest filter of the char-CNN.
        max_characters: positions of a word at the most, its markers included.
    """

    def __init__(self, max_width: int, max_characters: int = 50):
        self.max_width, self.max_characters = max_width, max_characters

    def __call__(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids ``(n_words, max_characters)``, and how many of its positions each word's vector
        needs ``(n_words,)`` (see `encode_words`)."""
        encoded = [encode_word(word, self.max_characters) for word in words]
        ids = np.full((len(encoded), self.max_characters), PADDING, dtype=np.int16)
        for row, of_word in zip(ids, encoded, strict=True):
            row[: len(of_word)] = of_word
        sizes = np.array([len(of_word) for of_word in encoded], dtype=np.int64)
        return ids, np.minimum(sizes + self.max_width, self.max_characters)


def is_cut(word: str, max_characters: int = 50) -> bool:
    """Whether `encode_word` leaves bytes of this word out."""
    return len(word.encode("utf-8", "ignore")) > max_characters - 2


def encode_words(words: Sequence[str], max_width: int, max_characters: int = 50) -> torch.Tensor:
    """Ids of many words, padded only as far as their vectors need.

    Padding takes part in the max over positions, so one window of padding alone has to stay
    for the widest filter: the words get ``min(max_characters, longest + max_width)`` positions,
    which gives the same vectors as all ``max_characters`` of them.

    Args:
        words: distinct or not; each is encoded by itself.
        max_width: the widest filter of the char-CNN.
        max_characters: positions of a word at the most, its markers included.

    Returns:
        int64 ids ``(n_words, n_positions)``.
    """
    encoded = [encode_word(word, max_characters) for word in words]
    longest = max(map(len, encoded), default=0)
    n_positions = min(max_characters, longest + max_width)
    padded = [ids + [PADDING] * (n_positions - len(ids)) for ids in encoded]
    return torch.tensor(padded, dtype=torch.int64).reshape(len(words), n_positions)
