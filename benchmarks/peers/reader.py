"""What all readers do: load a biLM, read sentences from a state of zeros, write the layers.

    python read_PEER.py WEIGHTS SENTENCES [--out OUT] [--batch-size 32]

WEIGHTS is a directory, SENTENCES a JSON list of lists of words. OUT, an .npz, gets all layers of
each: s0, s1, …, (n_layers + 1, n_words, 2P). One line of JSON is printed: the version and the
seconds that loading and reading took, with one thread those of the processor, so that other work
on the machine matters little. This runs in the peers' environments and knows NumPy only.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

Batch = list[list[str]]
Read = Callable[[Batch], Sequence[np.ndarray]]  # every sentence from zeros, without padding


def run(package: str, load: Callable[[Path, int], Read]) -> None:
    """Do as the command line says.

    Args:
        package: the distribution, for its version.
        load: given a directory of weights and the largest size of a batch, what reads one.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("weights", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    size = arguments.batch_size
    sentences = json.loads(arguments.sentences.read_text("utf-8"))
    # Sentences of similar length together: next to no padding, the best case for everyone.
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    batches = [order[i : i + size] for i in range(0, len(order), size)]

    threads = os.environ.get("OMP_NUM_THREADS")
    clock = time.process_time if threads == "1" else time.perf_counter
    start = clock()
    read = load(arguments.weights, size)
    loading = clock() - start
    read([["Hello", "!"]])  # what a framework does only once
    start = clock()
    layers = {}
    for batch in batches:
        results = read([sentences[i] for i in batch])
        if arguments.out:
            layers.update({f"s{i}": result for i, result in zip(batch, results, strict=True)})
    reading = clock() - start

    if arguments.out:
        np.savez(arguments.out, **layers)
    print(json.dumps({"version": version(package), "loading": loading, "reading": reading}))
