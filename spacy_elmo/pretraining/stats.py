"""Statistics of a text: its word counts, and what will be split or truncated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..bilm.characters import is_truncated
from ..lm.vocabulary import UNK, UNKNOWN, Vocabulary
from .config import PretrainConfig

MARKS = frozenset(",.?!;:،؛؟。，、！？；：।")
MOST_ATTACHED = 0.02  # of the words in a tokenized text, which has abbreviations
MAX_TYPES = 2_000_000  # distinct words that are counted: a few hundred MB


@dataclass
class CorpusStats:
    """The statistics of a text.

    Attributes:
        counts: how often each word occurs.
        n_words: the number of words.
        n_sentences: the number of sentences.
        n_long: the number of sentences that are split.
        n_segments: the number of sentences after the split.
        is_truncated: rare words are missing in the counts, or their counts are too low.
    """

    counts: Counter[str] = field(default_factory=Counter)
    n_words: int = 0
    n_sentences: int = 0
    n_long: int = 0
    n_segments: int = 0
    is_truncated: bool = False

    def epoch_steps(self, config: PretrainConfig) -> int:
        """The number of steps in an epoch, or a few more, because the last batch of a buffer is
        shorter. A schedule may be too long, because a run ends with its last epoch."""
        n_tokens = self.n_words + 2 * self.n_segments
        n_buffers = math.ceil(self.n_words / config.corpus.buffer_words)
        return math.ceil(n_tokens / config.training.batch_words) + n_buffers - 1

    @property
    def attached(self) -> float:
        """The share of words that end in a punctuation mark, as in raw text: ``"nine,"``. Zero if
        more marks are words by themselves."""
        attached = alone = 0
        for word, n in self.counts.items():
            attached += n * (word[-1:] in MARKS and any(map(str.isalpha, word)))
            alone += n * (word in MARKS)
        return attached / max(self.n_words, 1) if attached > alone else 0.0

    def describe(self, vocab: Vocabulary, max_characters: int) -> str:
        """Describe in one line the size, the rate of unknown words, and what is split or truncated.

        Args:
            vocab: the vocabulary of the head.
            max_characters: the biLM's ``max_characters_per_token``.
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
    """Compute the statistics of a text, in one pass and bounded memory.

    Args:
        sentences: lists of words.
        max_words: longer sentences are split.
        read: turns words into the form in which the biLM reads them, and in which they are counted.
        max_types: the largest number of distinct words. If there are more, the rarer half is
            dropped; a dropped word that comes again is counted from zero.
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
