"""Words per second of the archived implementations and of ours, over the same biLM and text.

    python benchmarks/peers/speed.py TEXT [--weights en_sm] [--words 10000] [--threads 1] [--runs 5]

TEXT is any UTF-8 text, a paragraph a line, also .gz or .xz. Its sentences are read in batches of
similar length from what `python -m spacy elmo convert` exports; ours reads the weights as they
are. Each run is a process of its own, ours and the peers' in turn; printed are the medians of
all runs, and how many times as fast ours is. Ours runs four times: in float32 and in bfloat16,
each also with the compiled kernel. MiniLM is all-MiniLM-L6-v2, which reads the same sentences into
vectors of word pieces; it and en_core_web_sm's tok2vec have weights of their own. Loading is all
from files to a model that can read; importing is the start of Python and all that is imported
before; memory is the most that the process had.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
from itertools import takewhile
from pathlib import Path
from typing import Any

import spacy
from exported import export
from peers import CACHE, ENVIRONMENTS, OURS, read

from spacy_elmo.pipeline.segments import split_text
from spacy_elmo.pretraining.data.shards import read_lines

OPTIONS: dict[str, dict[str, Any]] = {
    "float32": {},
    "bfloat16": {"precision": "bfloat16"},
    "compiled": {"compiled": 1},
    "compiled, bfloat16": {"precision": "bfloat16", "compiled": 1},
}


def read_sentences(path: Path, n_words: int) -> list[list[str]]:
    """The first sentences of a text, about so many words of them."""
    read_words = 0

    def enough(words: list[str]) -> bool:
        nonlocal read_words
        read_words += len(words)
        return read_words <= n_words

    return list(takewhile(enough, split_text(spacy.blank("en"), read_lines(path))))


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--batch-size", type=int, default=32, help="sentences")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peers", nargs="*", choices=ENVIRONMENTS, default=list(ENVIRONMENTS))
    parser.add_argument("--cache", type=Path, default=CACHE, help="where environments are kept")
    arguments = parser.parse_args()

    sentences = read_sentences(arguments.text, arguments.words)
    n_words = sum(len(words) for words in sentences)
    sides = {name: OURS for name in OPTIONS} | {peer: peer for peer in arguments.peers}
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as name:
        file, exported = Path(name, "sentences.json"), Path(name, "exported")
        file.write_text(json.dumps(sentences))
        export(arguments.weights, exported)
        for _ in range(arguments.runs):
            for side, results in runs.items():
                peer, options = sides[side], OPTIONS.get(side, {})
                weights = arguments.weights if peer == OURS else str(exported)
                shape = {"threads": arguments.threads, "batch_size": arguments.batch_size}
                results.append(read(peer, arguments.cache, weights, file, **shape, **options))

    print(f"{arguments.text.name}: {n_words:,} words, {len(sentences):,} sentences")
    print(
        f"weights {arguments.weights}, batches of {arguments.batch_size}; {processor()}, ", end=""
    )
    print(
        f"{os.cpu_count()} cores, threads {arguments.threads}; medians of {arguments.runs} runs\n"
    )
    columns = ("importing (s)", "loading (s)", "memory (MB)", "weights (MB)")
    print("| | words/s | " + " | ".join((*OPTIONS, *columns)) + " |")
    print("|---|---|" + "---|" * (len(OPTIONS) + len(columns)))
    for peer, results in runs.items():
        reading = [run["reading"] for run in results]
        ratios = []
        for name in OPTIONS:
            pairs = zip(runs[name], reading, strict=True)
            ratios.append(f"{statistics.median(b / a['reading'] for a, b in pairs):.2f} ×")
        costs = {
            name: statistics.median(run[name] for run in results)
            for name in ("importing", "loading", "memory", "size")
        }
        print(
            f"| {peer} {results[0]['version']} | {n_words / statistics.median(reading):,.0f} "
            f"| {' | '.join(ratios)} | {costs['importing']:.1f} | {costs['loading']:.2f} "
            f"| {costs['memory']:.0f} | {costs['size']:.1f} |"
        )


if __name__ == "__main__":
    main()
