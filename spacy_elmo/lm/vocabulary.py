"""The words that a language model predicts, most frequent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..bilm.characters import BOS, EOS
from ..util.files import write_text
from ..weights.layout import read_words

UNK = "<UNK>"
SPECIALS = (BOS, EOS, UNK)
UNKNOWN = SPECIALS.index(UNK)


class Vocabulary:
    """The words that a language model predicts, and their indices.

    The first three are ``<S>``, ``</S>`` and ``<UNK>``. The others are sorted by frequency, which
    the sampled softmax relies on.

    Args:
        words: the words.
        source: where they come from, for errors.

    Attributes:
        ids: the index of each word.

    Raises:
        ValueError: the first three words are others, or a word occurs twice.
    """

    def __init__(self, words: Sequence[str], source: str = "The vocabulary"):
        self.words = list(words)
        self.ids = {word: index for index, word in enumerate(self.words)}
        if tuple(self.words[:3]) != SPECIALS:
            raise ValueError(
                f"{source} must begin with {', '.join(SPECIALS)}, one word per line; "
                f"found {self.words[:3]}."
            )
        if len(self.ids) < len(self.words):
            [(duplicate, _)] = Counter(self.words).most_common(1)
            raise ValueError(f"{source} has the word {duplicate!r} more than once.")

    def __len__(self) -> int:
        return len(self.words)

    __iter__ = None  # or Python would look up 0, 1, 2, … and find <UNK> forever

    def __getitem__(self, word: str) -> int:
        """The index of a word, or of ``<UNK>`` if the word is not in the vocabulary."""
        return self.ids.get(word, UNKNOWN)

    @classmethod
    def from_counts(cls, counts: Counter[str], max_size: int, min_count: int) -> Vocabulary:
        """The vocabulary of the most frequent words; equal counts are sorted alphabetically.

        Args:
            counts: how often each word occurs.
            max_size: the largest size, with the three special words.
            min_count: rarer words are left out.

        Raises:
            ValueError: a word is empty or contains a line break.
        """
        broken = next((word for word in counts if not word or "\n" in word or "\r" in word), None)
        if broken is not None:
            raise ValueError(
                f"The word {broken!r} of the training text is empty or contains a line break, "
                f"but a vocabulary has one word per line. Its reader must split such words."
            )
        known = {word: n for word, n in counts.items() if n >= min_count and word not in SPECIALS}
        frequent = sorted(known, key=lambda word: (-known[word], word))
        return cls([*SPECIALS, *frequent[: max_size - len(SPECIALS)]])

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Read a file of one word per line.

        Raises:
            ValueError: the file cannot be read, or is no vocabulary.
        """
        return cls(read_words(path), f"The vocabulary {path}")

    def write(self, path: Path) -> None:
        """Write one word per line, the whole file or none."""
        write_text(path, "\n".join(self.words) + "\n")
