"""Corpus statistics: word counts, and what will be split or truncated."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from unicodedata import category

from ..bilm.characters import CharacterIds, is_truncated
from ..lm.vocabulary import UNK, UNKNOWN, Vocabulary

MAX_TYPES = 2_000_000  # distinct words that are counted: a few hundred MB
MARKS = ".,;!?…،؛؟।。，、！？；"
# Share of distinct words that end in one of the marks. Of texts in ten languages, those before
# tokenization have 8 to 46 %, those after it 1.2 % at most (abbreviations), few marks or many.
MOST_GLUED = 0.04


@dataclass
class CorpusStats:
    """The statistics of a text.

    Attributes:
        max_words: of a segment; longer sentences are split.
        max_types: distinct words counted; when there are more, the rarer half of them is dropped,
            and one that is seen again is counted from zero.
        read: the words of a sentence as the biLM reads them, and as they are counted.
        counts: how often each word occurs.
        n_words: words.
        n_sentences: sentences.
        n_long: sentences that are split.
        n_segments: sentences, and segments of those that are split.
        is_truncated: rare words are missing in the counts, or their counts are too low.
    """

    max_words: int
    max_types: int = MAX_TYPES
    read: Callable[[Sequence[str]], Sequence[str]] = tuple
    counts: Counter[str] = field(default_factory=Counter)
    n_words: int = 0
    n_sentences: int = 0
    n_long: int = 0
    n_segments: int = 0
    is_truncated: bool = False

    def count(self, sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """Count sentences as they pass through: yields them unchanged."""
        for words in sentences:
            self.counts.update(self.read(words))
            self.n_words += len(words)
            self.n_sentences += 1
            self.n_long += len(words) > self.max_words
            self.n_segments += -(-len(words) // self.max_words)
            if len(self.counts) > self.max_types:
                self.counts = Counter(dict(self.counts.most_common(self.max_types // 2)))
                self.is_truncated = True
            yield words

    def glued(self) -> list[str]:
        """Words with a punctuation mark at their end, the most frequent ones first, if there are
        so many as only in text that was not tokenized; otherwise none."""
        found = Counter({w: n for w, n in self.counts.items() if _is_glued(w)})
        n_alone = sum(n for w, n in self.counts.items() if w in MARKS)
        is_raw = len(found) > MOST_GLUED * len(self.counts) and found.total() > n_alone
        return [word for word, _ in found.most_common()] if is_raw else []

    def describe(self, vocab: Vocabulary, to_ids: CharacterIds) -> str:
        """One line: the size, the rate of unknown words, and what is split or truncated.

        Args:
            vocab: the words that are predicted.
            to_ids: the ids that the biLM reads.
        """
        n_words = max(1, self.n_words)
        known = sum(n for word, n in self.counts.items() if vocab[word] != UNKNOWN)
        text = (
            f"{self.n_words:,} words in {self.n_sentences:,} sentences, "
            f"{1 - known / n_words:.2%} {UNK}"
        )
        if self.n_long:
            text += f"; {self.n_long:,} sentences of more than {self.max_words} words split"
        limit = to_ids.max_characters
        if long := sum(n for word, n in self.counts.items() if is_truncated(word, limit)):
            least = "at least " if self.is_truncated else ""
            text += f"; {least}{long:,} words truncated to {limit - 2} bytes"
        if self.is_truncated:
            text += "; too many distinct words to count, the rarest are left out"
        return text


def _is_glued(word: str) -> bool:
    """Tell if a mark follows a letter, a vowel sign of one, or a digit."""
    return len(word) > 1 and word[-1] in MARKS and category(word[-2])[0] in "LMN"


def count_corpus(
    sentences: Iterable[Sequence[str]],
    max_words: int,
    max_types: int = MAX_TYPES,
    read: Callable[[Sequence[str]], Sequence[str]] = tuple,
) -> CorpusStats:
    """The statistics of a text, in one pass and bounded memory; see `CorpusStats`."""
    stats = CorpusStats(max_words, max_types, read)
    deque(stats.count(sentences), maxlen=0)
    return stats
