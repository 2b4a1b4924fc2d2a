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

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

WORDS = [f"word{i}" for i in range(200)]
FILLING_TEXTS = 3500  # of 20 new words each: more than the word cache has room for
TAGS = ("A", "B", "C")
NOISE = 4  # MB by which peaks of equal work differ, however long it takes


def resident() -> float:
    """MB of memory of this process, without what the allocator could give back."""
    gc.collect()
    with suppress(OSError, AttributeError):  # of glibc alone
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def make_nlp(weights: str, cache_mb: int) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": weights, "cache_mb": cache_mb}})
    listener = {"@architectures": "spacy-elmo.ElmoListener.v1"}
    config = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}}
    tagger = nlp.add_pipe("tagger", config=config)
    for tag in TAGS:
        tagger.add_label(tag)
    nlp.initialize()
    return nlp


def read(nlp: Language, rng: random.Random, n_texts: int) -> None:
    """Read texts of new words."""
    with nlp.memory_zone():
        texts = [" ".join(f"new{rng.randrange(10**9)}" for _ in range(20)) for _ in range(n_texts)]
        for doc in nlp.pipe(texts, batch_size=20):
            assert np.isfinite(doc.tensor).all()


def use(nlp: Language, rng: random.Random, path: Path | None) -> None:
    """New texts read, some sentences trained on, and the pipeline saved, to a path, and loaded."""
    read(nlp, rng, 50)
    examples = []
    for _ in range(20):
        words = rng.choices(WORDS, k=12)
        tags = [TAGS[int(word[4:]) % 3] for word in words]
        examples.append(
            Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=tags))
        )
    optimizer = nlp.resume_training()
    nlp.update(examples, sgd=optimizer)
    if path is None:
        return
    nlp.to_disk(path)
    [loaded] = spacy.load(path).pipe(["word1 word2 word3"])
    assert [token.tag_ for token in loaded] != [""] * 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--cache-mb", type=int, default=2, help="0 for no cache of layers")
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--most", type=float, default=0.5, help="MB a minute allowed, beyond noise")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng, nlp = random.Random(0), make_nlp(args.weights, args.cache_mb)
    filling = []  # memory while the caches fill for the first time
    for _ in range(0, FILLING_TEXTS, 50):
        read(nlp, rng, 50)
        filling.append(resident())
    started = time.monotonic()
    times, memory, files = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        while (minutes := (time.monotonic() - started) / 60) < args.minutes:
            use(nlp, rng, Path(folder) / "nlp" if len(times) % 5 == 0 else None)
            times.append(minutes)
            memory.append(resident())
            files.append(len(os.listdir("/proc/self/fd")))
    last = sum(t < args.minutes * 2 / 3 for t in times)
    before, after = max(filling + memory[:last]), max(memory[last:])
    rise, third = after - before, args.minutes / 3
    print(
        f"{len(times):,} rounds in {times[-1]:.1f} minutes, cache_mb = {args.cache_mb}: at most "
        f"{before:.1f} MB, then {after:.1f} MB, {rise / third:+.2f} MB a minute; "
        f"{files[last]} open files, then {files[-1]}"
    )
    sys.exit(rise > args.most * third + NOISE or files[-1] > files[last])


if __name__ == "__main__":
    main()
