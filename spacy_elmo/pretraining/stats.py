"""Corpus statistics: word counts, and what will be split or truncated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..bilm.characters import is_truncated
from ..lm.vocabulary import UNK, UNKNOWN, Vocabulary
from .config import PretrainConfig

MARKS = frozenset(",.?!;:،؛؟。，、！？；：।")
MOST_ATTACHED = 0.02  # of the words of a tokenized text, which has abbreviations
MAX_TYPES = 2_000_000  # distinct words that are counted: a few hundred MB


@dataclass
class CorpusStats:
    """The statistics of a text.

    Attributes:
        counts: how often each word occurs.
        n_words: words.
        n_sentences: sentences.
        n_long: sentences that are split.
        n_segments: sentences, and segments of those that are split.
        is_truncated: rare words are missing in the counts, or their counts are too low.
    """

    counts: Counter[str] = field(default_factory=Counter)
    n_words: int = 0
    n_sentences: int = 0
    n_long: int = 0
    n_segments: int = 0
    is_truncated: bool = False

    def epoch_steps(self, config: PretrainConfig) -> int:
        """How many steps an epoch has, or a few more: the last batch of each buffer is shorter.
        A schedule may be too long, but a run ends with its last epoch."""
        n_tokens = self.n_words + 2 * self.n_segments
        n_buffers = math.ceil(self.n_words / config.corpus.buffer_words)
        return math.ceil(n_tokens / config.training.batch_words) + n_buffers - 1

    @property
    def attached(self) -> float:
        """The share of words that end in a mark, as in raw text: ``"nine,"``. Zero if more of these
        marks are words of their own."""
        attached = alone = 0
        for word, n in self.counts.items():
            attached += n * (word[-1:] in MARKS and any(map(str.isalpha, word)))
            alone += n * (word in MARKS)
        return attached / max(self.n_words, 1) if attached > alone else 0.0

    def describe(self, vocab: Vocabulary, max_characters: int) -> str:
        """One line: the size, the rate of unknown words, and what is split or truncated.

        Args:
            vocab: the words that are predicted.
            max_characters: of a word that the biLM reads.
        """
        known = sum(n for word, n in self.counts.items() if vocab[word] != UNKNOWN)
        long = sum(n for word, n in self.counts.items() if is_truncated(word, max_characters))
        text = f"{self.n_words:,} words in {self.n_sentences:,} sentences"
        text += f", {1 - known / self.n_words:.2%} {UNK}"
        if self.n_long:
            text += f"; {self.n_long:,} long sentences split"
        if long:
            text += f"; {long:,} words truncated to {max_characters - 2} bytes"
        if self.is_truncated:
            text += "; too many distinct words to count, the rarest are left out"
        return text


def count_corpus(
    sentences: Iterable[Sequence[str]],
    max_words: int,
    read: Callable[[Sequence[str]], Sequence[str]] = tuple,
    max_types: int = MAX_TYPES,
) -> CorpusStats:
    """The statistics of a text, in one pass and bounded memory.

    Args:
        sentences: lists of words.
        max_words: of a segment; longer sentences are split.
        read: the words of a sentence as the biLM reads them, and as they are counted.
        max_types: distinct words counted; when there are more, the rarer half of them is dropped,
            and one that is seen again is counted from zero.
    """
    stats = CorpusStats()
    for words in sentences:
        stats.counts.update(read(words))
        stats.n_words += len(words)
        stats.n_sentences += 1
        stats.n_long += len(words) > max_words
        stats.n_segments += -(-len(words) // max_words)
        if len(stats.counts) > max_types:
            stats.counts = Counter(dict(stats.counts.most_common(max_types // 2)))
            stats.is_truncated = True
    return stats
