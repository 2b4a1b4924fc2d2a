"""Mixed use for a long time: do memory and open files stay flat?

    python benchmarks/reliability/soak.py --minutes 60              # the layer cache full
    python benchmarks/reliability/soak.py --minutes 60 --cache-mb 0 # and off

Each round reads texts in several threads, within one memory zone as spaCy's documentation says,
trains a tagger that listens, and saves and loads the pipeline. Memory rises and falls as caches
fill and drop words: prints by how much its peak in the last third of the time exceeds the peak
before, by cause, and the number of open files.

The texts have more distinct words than the word cache has room for, but no new ones: inside a
memory zone spaCy drops words, yet keeps a cell for each in its tables, with or without ELMo.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.bilm.word_cache import ENTRY_BYTES

TAGS = ("A", "B", "C")
WORDS = [f"new{n}" for n in range(100_000)]  # more than the word cache has room for
ROUND = 1000  # words that a round reads
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


def causes(nlp: Language) -> dict[str, float]:
    """MB of memory by what takes it; "other" is the rest of the process, with the table of words'
    vectors, which stays when the word cache begins anew."""
    bilm = nlp.get_pipe("elmo").bilm
    found = {
        "words": len(bilm.model.word_cache) * ENTRY_BYTES / 2**20,
        "layers": bilm.cache._bytes / 2**20,
    }
    return {**found, "other": resident() - sum(found.values())}


def read(nlp: Language, words: list[str], pool: ThreadPoolExecutor) -> dict[str, float]:
    """Read words in texts of 20 each; the memory afterwards."""
    texts = [" ".join(words[i : i + 20]) for i in range(0, len(words), 20)]
    with nlp.memory_zone():
        assert all(pool.map(lambda text: nlp(text).tensor.any(), texts))
    return causes(nlp)


def use(
    nlp: Language, rng: random.Random, pool: ThreadPoolExecutor, folder: Path
) -> dict[str, float]:
    """Read texts, train on some sentences, save and load; the memory afterwards."""
    read(nlp, rng.sample(WORDS, ROUND), pool)
    examples = []
    for _ in range(20):
        numbers = rng.choices(range(200), k=12)
        words, tags = [f"word{n}" for n in numbers], [TAGS[n % 3] for n in numbers]
        docs = Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=tags)
        examples.append(Example(*docs))
    nlp.update(examples, sgd=nlp.resume_training())
    nlp.to_disk(folder)
    assert all(token.tag_ for token in spacy.load(folder)("word1 word2 word3"))
    return causes(nlp)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--cache-mb", type=int, default=2, help="0 for no cache of layers")
    parser.add_argument("--threads", type=int, default=8, help="that read")
    parser.add_argument("--most", type=float, default=0.5, help="MB a minute allowed, beyond noise")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng, nlp, pool = random.Random(0), make_nlp(args.cache_mb), ThreadPoolExecutor(args.threads)
    memory = [read(nlp, WORDS[i : i + ROUND], pool) for i in range(0, len(WORDS), ROUND)]
    filling, files = len(memory), []
    minutes = [0.0] * filling
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while minutes[-1] < args.minutes:
            memory.append(use(nlp, rng, pool, Path(folder)))
            minutes.append((time.monotonic() - started) / 60)
            files.append(len(os.listdir("/proc/self/fd")))
    last = sum(minute < args.minutes * 2 / 3 for minute in minutes)
    print(f"{len(files):,} rounds of {args.threads} threads, cache_mb = {args.cache_mb}")
    print(f"open files: {files[0]}, then {files[-1]}")
    print("| MB | first | peak of two thirds | peak of the last third | a minute |")
    rises = {}
    for name in memory[0]:
        first = memory[filling][name]
        before, after = (max(m[name] for m in part) for part in (memory[:last], memory[last:]))
        rises[name] = (after - before) / (args.minutes / 3)
        print(f"| {name} | {first:.1f} | {before:.1f} | {after:.1f} | {rises[name]:+.2f} |")
    too_much = rises["other"] > args.most + NOISE / (args.minutes / 3)
    sys.exit(too_much or files[-1] > files[0])


if __name__ == "__main__":
    main()
