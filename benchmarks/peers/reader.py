"""What all readers do: load a biLM, read sentences from a state of zeros, write the layers.

    python read_PEER.py WEIGHTS SENTENCES [--out OUT] [--batch-size 32] [--form float32]

WEIGHTS is a directory, SENTENCES a JSON list of lists of words. OUT, an .npz, gets all layers of
each: s0, s1, …, (n_layers + 1, n_words, 2P). FORM is that of the weights, where there are several
(else float32). One line of JSON is printed: the version; the seconds
that Python and its imports, loading (both of the processor, where other work on the machine matters
little) and reading took (by the clock on the wall, and of the processor); the most memory that the
process had, and the size of the weights' files, in MB. This runs in the peers' environments on
Linux and knows NumPy only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

Batch = list[list[str]]
Read = Callable[[Batch], Sequence[np.ndarray]]  # every sentence from zeros, without padding


def megabytes(path: Path) -> float:
    """Of a file, or of all files in a directory."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def peak_memory() -> float:
    """The most that this process had, in MB. (That of `resource` begins with its parent's.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    [kilobytes] = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(kilobytes) * 1024 / 1e6


def run(
    package: str,
    load: Callable[[Path, int, str], Read],
    find: Callable[[Path, str], Path] = lambda weights, form: weights,
) -> None:
    """Do as the command line says.

    Args:
        package: the distribution, for its version.
        load: given a directory of weights, the largest size of a batch, and the form of the
            weights, what reads a batch.
        find: given that directory and form, where the weights of the encoder are.
    """
    importing = time.process_time()
    parser = argparse.ArgumentParser()
    parser.add_argument("weights", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--form", default="float32")
    arguments = parser.parse_args()
    size = arguments.batch_size
    sentences = json.loads(arguments.sentences.read_text("utf-8"))
    # Sentences of similar length together: next to no padding, the best case for everyone.
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    batches = [order[i : i + size] for i in range(0, len(order), size)]

    start = time.process_time()
    read = load(arguments.weights, size, arguments.form)
    loading = time.process_time() - start
    read([["Hello", "!"]])  # what a framework does only once
    start, processor = time.perf_counter(), time.process_time()
    layers = {}
    for batch in batches:
        results = read([sentences[i] for i in batch])
        if arguments.out:
            layers.update({f"s{i}": result for i, result in zip(batch, results, strict=True)})
    reading, processor = time.perf_counter() - start, time.process_time() - processor

    if arguments.out:
        np.savez(arguments.out, **layers)
    found = {
        "version": version(package),
        "importing": importing,
        "loading": loading,
        "reading": reading,
        "processor": processor,
        "memory": peak_memory(),
        "size": megabytes(find(arguments.weights, arguments.form)),
    }
    print(json.dumps(found))
