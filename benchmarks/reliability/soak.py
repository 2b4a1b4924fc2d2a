"""Mixed use for a long time: do memory and open files stay flat?

    python benchmarks/reliability/soak.py --minutes 60              # the layer cache full
    python benchmarks/reliability/soak.py --minutes 60 --cache-mb 0 # and off

Each round reads new texts, in a memory zone as spaCy's documentation says, trains a tagger that
listens, and saves and loads the pipeline. Memory rises and falls as caches fill and drop words:
prints by how much its peak in the last third of the time exceeds the peak before, in MB a minute,
and the number of open files.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

TAGS = ("A", "B", "C")
FILLING = 70  # rounds of reading that give the word cache more than it has room for
NOISE = 4  # MB by which peaks of equal work differ, however long it takes


def resident() -> float:
    """MB of memory of this process, without what the allocator could give back."""
    gc.collect()
    with suppress(OSError, AttributeError):  # of glibc alone
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def make_nlp(cache_mb: int) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"cache_mb": cache_mb}})
    listener = {"@architectures": "spacy-elmo.ElmoListener.v1"}
    tagger = nlp.add_pipe("tagger", config={"model": {"tok2vec": listener}})
    for tag in TAGS:
        tagger.add_label(tag)
    nlp.initialize()
    return nlp


def read(nlp: Language, rng: random.Random, n_texts: int) -> float:
    """Read texts of 20 new words each; the memory afterwards."""
    with nlp.memory_zone():
        texts = [" ".join(f"new{rng.randrange(10**9)}" for _ in range(20)) for _ in range(n_texts)]
        assert all(doc.tensor.any() for doc in nlp.pipe(texts, batch_size=20))
    return resident()


def use(nlp: Language, rng: random.Random, folder: Path) -> float:
    """Read new texts, train on some sentences, save and load; the memory afterwards."""
    read(nlp, rng, 50)
    examples = []
    for _ in range(20):
        numbers = rng.choices(range(200), k=12)
        words, tags = [f"word{n}" for n in numbers], [TAGS[n % 3] for n in numbers]
        docs = Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=tags)
        examples.append(Example(*docs))
    nlp.update(examples, sgd=nlp.resume_training())
    nlp.to_disk(folder)
    assert all(token.tag_ for token in spacy.load(folder)("word1 word2 word3"))
    return resident()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--cache-mb", type=int, default=2, help="0 for no cache of layers")
    parser.add_argument("--most", type=float, default=0.5, help="MB a minute allowed, beyond noise")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng, nlp, rounds = random.Random(0), make_nlp(args.cache_mb), []
    filled = max(read(nlp, rng, 50) for _ in range(FILLING))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while (minutes := (time.monotonic() - started) / 60) < args.minutes:
            memory = use(nlp, rng, Path(folder))
            rounds.append((minutes, memory, len(os.listdir("/proc/self/fd"))))
    last = sum(minutes < args.minutes * 2 / 3 for minutes, _, _ in rounds)
    before = max(filled, *(m for _, m, _ in rounds[:last]))
    after = max(m for _, m, _ in rounds[last:])
    rise, third, files = after - before, args.minutes / 3, (rounds[last][2], rounds[-1][2])
    print(
        f"{len(rounds):,} rounds, cache_mb = {args.cache_mb}: at most {before:.1f} MB, then "
        f"{after:.1f} MB, {rise / third:+.2f} MB a minute; {files[0]} open files, then {files[1]}"
    )
    sys.exit(rise > args.most * third + NOISE or files[1] > files[0])


if __name__ == "__main__":
    main()
