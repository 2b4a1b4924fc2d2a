"""Words per second of other implementations and models, and of ours, over the same text.

    python benchmarks/peers/speed.py TEXT [--weights en_sm] [--words 10000] [--runs 5]
        [--batch-sizes 32 128] [--threads 1]

TEXT is any UTF-8 text, a paragraph a line, also .gz or .xz. Its sentences, sorted by length, are
read in batches. The archived implementations read the same biLM, from what `python -m spacy elmo
convert` exports; MiniLM (all-MiniLM-L6-v2, which makes vectors of word pieces) and
en_core_web_sm's tok2vec have weights of their own. Ours reads in float32 and in bfloat16, each also
with the compiled kernel. For weights of a published size see `random_weights.py`.

Each run is a process of its own, all sides in turn; printed are medians of all runs, a table for
each size of batches, and one in which each side has the size that is best for it. How many times as
fast ours is, is a median of ratios of the same turn: of processor time on one thread, where other
work on the machine matters little, else by the clock on the wall. Loading is all from files to a
model that can read; importing is the start of Python and all that is imported before; memory is
the most that the process had.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from itertools import product, takewhile
from pathlib import Path
from statistics import median
from typing import Any

import spacy
from exported import export
from peers import CACHE, ENVIRONMENTS, OURS, read

from spacy_elmo.text.segments import split_text
from spacy_elmo.text.shards import read_lines

SETTINGS: dict[str, dict[str, Any]] = {  # of ours
    "float32": {},
    "bfloat16": {"precision": "bfloat16"},
    "compiled": {"compiled": 1},
    "compiled, bfloat16": {"precision": "bfloat16", "compiled": 1},
}
COSTS = {
    "importing": "importing (s)",
    "loading": "loading (s)",
    "memory": "memory (MB)",
    "size": "weights (MB)",
}
Runs = list[dict[str, Any]]  # of one side: what `reader` prints, in turn with the other sides


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


def print_table(title: str, sides: dict[str, Runs], n_words: int, clock: str) -> None:
    """One row for each side, with how many times as fast as it each of ours is.

    Args:
        title: of the first column.
        sides: the runs of each.
        n_words: that each run has read.
        clock: ``"reading"``, on the wall, or ``"processor"``.
    """
    ours = [name for name in SETTINGS if name in sides]
    columns = [title, "words/s", "words/s of the processor", *ours, *COSTS.values()]
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for side, runs in sides.items():
        speeds = [n_words / median(run[name] for run in runs) for name in ("reading", "processor")]
        cells = [f"{side} {runs[0]['version']}", *(f"{speed:,.0f}" for speed in speeds)]
        for name in ours:
            pairs = zip(sides[name], runs, strict=True)
            cells.append(f"{median(run[clock] / own[clock] for own, run in pairs):.2f} ×")
        cells += [f"{median(run[name] for run in runs):.4g}" for name in COSTS]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 128], help="sentences")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--peers", nargs="*", choices=ENVIRONMENTS, default=list(ENVIRONMENTS))
    parser.add_argument("--cache", type=Path, default=CACHE, help="where environments are")
    arguments = parser.parse_args()

    sentences = read_sentences(arguments.text, arguments.words)
    n_words = sum(len(words) for words in sentences)
    sides = [*arguments.settings, *arguments.peers]
    tables: dict[int, dict[str, Runs]] = {
        size: {side: [] for side in sides} for size in arguments.batch_sizes
    }
    with tempfile.TemporaryDirectory() as name:
        file, exported = Path(name, "sentences.json"), Path(name, "exported")
        file.write_text(json.dumps(sentences))
        export(arguments.weights, exported)
        for _, side, size in product(range(arguments.runs), sides, arguments.batch_sizes):
            peer, weights = (OURS, arguments.weights) if side in SETTINGS else (side, str(exported))
            shape = {"threads": arguments.threads, "batch_size": size}
            options = {**shape, **SETTINGS.get(side, {})}
            tables[size][side].append(read(peer, arguments.cache, weights, file, **options))

    print(f"{arguments.text.name}: {n_words:,} words, {len(sentences):,} sentences")
    print(f"weights {arguments.weights}; {processor()}, {os.cpu_count()} cores, ", end="")
    print(f"threads {arguments.threads}; medians of {arguments.runs} runs")
    clock = "processor" if arguments.threads == 1 else "reading"
    for size, table in tables.items():
        print_table(f"batches of {size}", table, n_words, clock)
    if len(tables) > 1:
        best = {
            side: min(
                (table[side] for table in tables.values()),
                key=lambda runs: median(run[clock] for run in runs),
            )
            for side in sides
        }
        print_table("each at its best", best, n_words, clock)


if __name__ == "__main__":
    main()
