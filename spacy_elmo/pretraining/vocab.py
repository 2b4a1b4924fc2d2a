"""The words a language model predicts, most frequent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..bilm.characters import BOS, EOS, is_cut
from ..bilm.layout import read_words
from .files import write_text

UNK = "<UNK>"
MOST_WORDS = 2_000_000  # distinct ones that are counted: a few hundred MB
SPECIALS = (BOS, EOS, UNK)
UNKNOWN = SPECIALS.index(UNK)  # its place


class Vocabulary:
    """Words by their place; places 0, 1 and 2 are ``<S>``, ``</S>`` and ``<UNK>``.

    The order by frequency is what the sampled softmax takes its probabilities from.

    Raises:
        ValueError: the first three words are not the special ones, or a word stands twice.
    """

    def __init__(self, words: Sequence[str], source: str = "The vocabulary"):
        self.words = list(words)
        self.places = {word: place for place, word in enumerate(self.words)}
        if tuple(self.words[:3]) != SPECIALS:
            raise ValueError(
                f"{source} must begin with {', '.join(SPECIALS)}, one word a line; "
                f"found {self.words[:3]}."
            )
        if len(self.places) < len(self.words):
            double = next(word for word, n in Counter(self.words).items() if n > 1)
            raise ValueError(f"{source} has the word {double!r} more than once.")

    def __len__(self) -> int:
        return len(self.words)

    __iter__ = None  # or Python would look up 0, 1, 2, … and find an <UNK> for ever

    def __getitem__(self, word: str) -> int:
        """The place of a word, that of ``<UNK>`` if it is not there."""
        return self.places.get(word, UNKNOWN)

    @classmethod
    def from_counts(cls, counts: Counter[str], max_size: int, min_count: int) -> Vocabulary:
        """The most frequent words; equal counts are put in order of the alphabet.

        Args:
            counts: how often each word was seen.
            max_size: words at the most, the special ones included.
            min_count: rarer words are left out.

        Raises:
            ValueError: a word has a line break.
        """
        broken = next((word for word in counts if not word or "\n" in word or "\r" in word), None)
        if broken is not None:
            raise ValueError(
                f"The word {broken!r} of the training text has a line break inside, or nothing: a "
                f"vocabulary has one word a line. Its reader has to part such words."
            )
        frequent = sorted(
            (-count, word)
            for word, count in counts.items()
            if count >= min_count and word not in SPECIALS
        )
        return cls([*SPECIALS, *(word for _, word in frequent[: max_size - len(SPECIALS)])])

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Read a file of one word a line.

        Raises:
            ValueError: it cannot be read, or is not such a file.
        """
        return cls(read_words(path), f"The vocabulary {path}")

    def write(self, path: Path) -> None:
        """Write one word a line, the whole file or nothing."""
        write_text(path, "\n".join(self.words) + "\n")


@dataclass
class Survey:
    """What a text holds.

    Attributes:
        counts: how often each word occurs.
        n_words: its words.
        n_sentences: its sentences.
        n_long: sentences of more words than are read at once, which are cut into pieces.
        n_pieces: sentences and pieces of them that are read.
        has_forgotten: rare words are missing in the counts, or their counts are too low.
    """

    counts: Counter[str]
    n_words: int = 0
    n_sentences: int = 0
    n_long: int = 0
    n_pieces: int = 0
    has_forgotten: bool = False

    def describe(
        self,
        vocab: Vocabulary,
        max_words: int,
        max_characters: int,
        table: Container[str] | None = None,
    ) -> str:
        """One line on it: its size, the rate of unknown words, and all that will be cut, or, with
        a table of word vectors, is not in it."""
        known = sum(n for word, n in self.counts.items() if vocab[word] != UNKNOWN)
        cut = 0
        if table is None:
            cut = sum(n for word, n in self.counts.items() if is_cut(word, max_characters))
        text = (
            f"{self.n_words:,} words in {self.n_sentences:,} sentences, "
            f"{1 - known / max(1, self.n_words):.2%} {UNK}"
        )
        if table is not None:
            missing = sum(n for word, n in self.counts.items() if word not in table)
            text += f", {missing / max(1, self.n_words):.2%} without a vector"
        if self.n_long:
            text += f"; {self.n_long:,} sentences of more than {max_words} words cut into pieces"
        if cut:
            least = "at least " if self.has_forgotten else ""
            text += f"; {least}{cut:,} words cut to {max_characters - 2} bytes"
        if self.has_forgotten:
            text += "; more distinct words than can be counted, the rarest are left out"
        return text


def survey(
    sentences: Iterable[Sequence[str]], max_words: int, most_words: int = MOST_WORDS
) -> Survey:
    """Count the words and sentences of a text, in one pass and bounded memory.

    Args:
        sentences: the text.
        max_words: of a piece that is read at once.
        most_words: distinct words that are held; when there are more, the rarer half of them is
            forgotten, and one that is seen again is counted anew.
    """
    found = Survey(Counter())
    for words in sentences:
        found.counts.update(words)
        found.n_words += len(words)
        found.n_sentences += 1
        found.n_long += len(words) > max_words
        found.n_pieces += -(-len(words) // max_words)
        if len(found.counts) > most_words:
            found.counts = Counter(dict(found.counts.most_common(most_words // 2)))
            found.has_forgotten = True
    return found
