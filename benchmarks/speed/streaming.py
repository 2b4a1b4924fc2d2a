"""Memory while a text far larger than memory is read for pretraining.

    python benchmarks/speed/streaming.py [--gigabytes 10] [--words 30000000]

Writes a synthetic text of a million distinct words to shards (some files under many names, so the
disk holds a part of it), and reads it as the trainer does: once to count its words, then in batches
through the buffer. Prints the resident memory during both, and its peak. --words: stop
each after so many words of the text.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from spacy_elmo.bilm.characters import CharacterIds
from spacy_elmo.lm.vocabulary import Vocabulary
from spacy_elmo.pretraining.config import CorpusSettings, TrainingSettings
from spacy_elmo.pretraining.corpus import CorpusPosition, TrainingCorpus
from spacy_elmo.pretraining.stats import count_corpus
from spacy_elmo.text.shards import Shards, write_shards

DISTINCT_FILES, WORDS_PER_FILE, N_TYPES = 8, 1_000_000, 1_000_000
ROWS = 8


def resident() -> float:
    """Resident memory of this process in MB; its highest so far where that alone is known."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmRSS"].split()[0]) / 1024
    return highest()


def highest() -> float:
    """Highest resident memory of this process so far, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def sentences(rng: np.random.Generator, n_words: int) -> Iterator[list[str]]:
    """Random sentences whose words follow Zipf's law, `word 7` being ``gw``."""
    written = 0
    while written < n_words:
        length = int(rng.integers(5, 60))
        ranks = np.exp(rng.random(length) * np.log(N_TYPES)).astype(int)
        written += length
        yield [spell(int(rank)) for rank in ranks]


def spell(rank: int) -> str:
    letters = ""
    while rank:
        rank, letter = divmod(rank, 20)
        letters += "bcdfghjklmnpqrstvwxz"[letter] + "aeiou"[letter % 5]
    return letters


def make_text(folder: Path, n_bytes: int) -> int:
    """Write shards of so many bytes in all; returns how many there are."""
    rng = np.random.default_rng(0)
    write_shards(sentences(rng, DISTINCT_FILES * WORDS_PER_FILE), folder, "none", WORDS_PER_FILE)
    originals = sorted(folder.iterdir())
    size, number = sum(file.stat().st_size for file in originals), len(originals)
    while size < n_bytes:
        original = originals[number % len(originals)]
        (folder / f"shard-{number:05d}.txt").hardlink_to(original)
        size += original.stat().st_size
        number += 1
    print(f"{number:,} shards of {size / 2**30:.1f} GiB in all")
    return number


class Watch:
    """Prints the memory at intervals of so many words."""

    def __init__(self, title: str, every: int):
        self.every, self.seen, self.next, self.start = every, 0, every, time.perf_counter()
        print(f"{title}\n{'million words':>14} {'MB':>6}")

    def see(self, n_words: int) -> None:
        self.seen += n_words
        if self.seen >= self.next:
            print(f"{self.seen / 1e6:14.1f} {resident():6,.0f}", flush=True)
            self.next += self.every

    def end(self) -> None:
        speed = self.seen / (time.perf_counter() - self.start)
        print(f"{'':8}{speed / 1e3:,.0f} thousand words/s")


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory while a large text is read.")
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--words", type=int, default=30_000_000)
    arguments = parser.parse_args()
    print(f"to begin with: {resident():,.0f} MB")
    with tempfile.TemporaryDirectory() as name:
        make_text(Path(name), int(arguments.gigabytes * 2**30))
        source = Shards(name)
        watch = Watch("counting", arguments.words // ROWS)

        def seen() -> Iterator[list[str]]:
            for words in source.sentences():
                if watch.seen >= arguments.words:
                    return
                yield words
                watch.see(len(words))

        found = count_corpus(seen(), max_words=100)
        watch.end()
        vocab = Vocabulary.from_counts(found.counts, 50_000, 2)
        corpus = TrainingCorpus(
            source, vocab, CharacterIds(6, 50), CorpusSettings(), TrainingSettings(batch_words=1024)
        )
        watch = Watch("batches", arguments.words // ROWS)
        for [batch], _ in corpus.batches(CorpusPosition()):
            watch.see(batch.n_words)
            if watch.seen >= arguments.words:
                break
        watch.end()
    print(f"highest: {highest():,.0f} MB")


if __name__ == "__main__":
    main()
