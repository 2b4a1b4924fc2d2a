"""What a text holds: its words, their counts, and what of them is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from ...bilm.characters import is_truncated
from ...lm.vocabulary import UNK, UNKNOWN, Vocabulary

MOST_WORDS = 2_000_000  # distinct ones that are counted: a few hundred MB


@dataclass
class CorpusStats:
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
            cut = sum(n for word, n in self.counts.items() if is_truncated(word, max_characters))
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


def count_corpus(
    sentences: Iterable[Sequence[str]], max_words: int, most_words: int = MOST_WORDS
) -> CorpusStats:
    """Count the words and sentences of a text, in one pass and bounded memory.

    Args:
        sentences: the text.
        max_words: of a piece that is read at once.
        most_words: distinct words that are held; when there are more, the rarer half of them is
            forgotten, and one that is seen again is counted anew.
    """
    found = CorpusStats(Counter())
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
