"""Memory while a text far larger than memory is read for pretraining.

    python benchmarks/speed/streaming.py [--gigabytes 10] [--words 30000000]

Writes a synthetic text of a million distinct words to shards (some files under many names, so the
disk holds a part of it), and reads it as the trainer does: once to count its words, then in batches
through the buffer. Prints the resident memory during both. --words: stop each after so many words
of the text. Linux only.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator
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
    """Memory of this process in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def sentences(rng: np.random.Generator, n_words: int) -> Iterator[list[str]]:
    """Random sentences whose words are numbers that follow Zipf's law."""
    written = 0
    while written < n_words:
        length = int(rng.integers(5, 60))
        written += length
        yield [f"word{int(x)}" for x in np.exp(rng.random(length) * np.log(N_TYPES))]


def make_text(folder: Path, n_bytes: int) -> None:
    """Write shards of so many bytes in all."""
    rng = np.random.default_rng(0)
    write_shards(sentences(rng, DISTINCT_FILES * WORDS_PER_FILE), folder, WORDS_PER_FILE)
    originals = sorted(folder.iterdir())
    size, number = sum(file.stat().st_size for file in originals), len(originals)
    while size < n_bytes:
        original = originals[number % len(originals)]
        (folder / f"shard-{number:05d}.txt.gz").hardlink_to(original)
        size, number = size + original.stat().st_size, number + 1
    print(f"{number:,} shards of {size / 2**30:.1f} GiB in all")


def watched(title: str, parts: Iterable[tuple[object, int]], n_words: int) -> Iterator[object]:
    """Parts and their numbers of words, up to so many, with lines of the memory meanwhile."""
    print(f"{title}\n{'million words':>14} {'MB':>6}")
    seen, shown = 0, 0
    for part, n in parts:
        seen += n
        yield part
        if seen * ROWS >= (shown + 1) * n_words:
            shown += 1
            print(f"{seen / 1e6:14.1f} {resident():6,.0f}", flush=True)
        if seen >= n_words:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--words", type=int, default=30_000_000)
    arguments = parser.parse_args()
    print(f"to begin with: {resident():,.0f} MB")
    with tempfile.TemporaryDirectory() as name:
        make_text(Path(name), int(arguments.gigabytes * 2**30))
        source = Shards(name)
        each = ((words, len(words)) for words in source.sentences())
        found = count_corpus(watched("counting", each, arguments.words), max_words=100)
        vocab = Vocabulary.from_counts(found.counts, 50_000, 2)
        corpus = TrainingCorpus(
            source, vocab, CharacterIds(6, 50), CorpusSettings(), TrainingSettings(batch_words=1024)
        )
        batches = ((batch, batch.n_words) for [batch], _ in corpus.batches(CorpusPosition()))
        for _ in watched("batches", batches, arguments.words):
            pass


if __name__ == "__main__":
    main()
