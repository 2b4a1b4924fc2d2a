"""Words per second of other implementations and models, and of ours, over the same text.

    python benchmarks/peers/speed.py TEXT [--weights en_sm] [--words 10000] [--runs 5]
        [--batch-sizes 8 32 128] [--threads 1] [--out FILE.json]

TEXT is any UTF-8 text, a paragraph a line, also .gz or .xz. Its sentences, sorted by length, are
read in batches. The archived implementations read the same biLM, from what `python -m spacy elmo
convert` exports. MiniLM (all-MiniLM-L6-v2, which makes vectors of word pieces) and en_core_web_sm's
tok2vec have weights of their own. Ours reads the weights as they are, and with gates rounded to
int8; MiniLM by PyTorch in float32, bfloat16 and int8, and by ONNX Runtime in float32 and int8. For
weights of a published size see `random_weights.py`.

Each run is a process of its own, all sides in turn. Printed is a table in which each side has the
size of batches that is best for it; figures are medians of all runs. Words are spaCy's tokens, for
all sides. How many times as fast our fastest form is, is a median of ratios of the same turn: of
processor time on one thread, where other work on the machine matters little, else by the clock on
the wall. The start is that of Python with all imports, and loading from files to a model that can
read, in seconds of processor time; memory is the most that the process had. `--out` writes the
table as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from itertools import product, takewhile
from pathlib import Path
from statistics import median
from typing import Any

import spacy
from exported import export
from peers import OURS, python_of, read, weights_of

from spacy_elmo.text.files import read_lines
from spacy_elmo.text.readers import split_text

Side = tuple[str, dict[str, Any]]  # the peer that `read` starts, and options of its reader
SETTINGS: dict[str, Side] = {
    "float32": (OURS, {}),
    "int8": (OURS, {"form": "int8"}),
}
PEERS: dict[str, Side] = {
    "allennlp": ("allennlp", {}),
    "simple_elmo": ("simple_elmo", {}),
    "bilm": ("bilm", {}),
    "minilm": ("minilm", {}),
    "minilm, bfloat16": ("minilm", {"form": "bfloat16"}),
    "minilm, int8": ("minilm", {"form": "int8"}),
    "minilm, onnx": ("minilm_onnx", {}),
    "minilm, onnx int8": ("minilm_onnx", {"form": "int8"}),
    "en_core_web_sm": ("en_core_web_sm", {}),
}
SIDES = SETTINGS | PEERS
Runs = list[dict[str, Any]]  # of one side: what `reader` prints, in turn with the other sides
Table = dict[str, dict[str, Any]]  # rows: side, figures by their columns


def read_sentences(path: Path, n_words: int) -> list[list[str]]:
    """The first sentences of a text, about so many words of them."""
    read_words = 0

    def enough(words: list[str]) -> bool:
        nonlocal read_words
        read_words += len(words)
        return read_words <= n_words

    return list(takewhile(enough, split_text(spacy.blank("en"), read_lines(path))))


def tabulate(measured: dict[int, dict[str, Runs]], n_words: int, clock: str) -> Table:
    """A row for each side, with the size of batches that is best for it.

    Args:
        measured: by the size of batches, the runs of each side.
        n_words: that each run has read.
        clock: ``"reading"``, on the wall, or ``"processor"``.
    """

    def middle(runs: Runs, *names: str) -> float:
        return median(sum(run[name] for name in names) for run in runs)

    best = {
        name: min(measured, key=lambda size: middle(measured[size][name], clock))
        for name in next(iter(measured.values()))
    }
    ours = [measured[size][name] for name, size in best.items() if name in SETTINGS]
    fastest = min(ours, key=lambda runs: middle(runs, clock))
    table: Table = {}
    for name, size in best.items():
        runs = measured[size][name]
        pairs = zip(fastest, runs, strict=True)
        table[name] = {
            "version": runs[0]["version"],
            "batches of": size,
            "words/s": round(n_words / middle(runs, "reading")),
            "fastest over": round(median(run[clock] / own[clock] for own, run in pairs), 2),
            "start (s)": round(middle(runs, "importing", "loading"), 2),
            "memory (MB)": round(middle(runs, "memory")),
            "weights (MB)": round(middle(runs, "size"), 1),
        }
    return table


def print_table(table: Table) -> None:
    columns = list(next(iter(table.values())))
    print(f"\n| | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for name, row in table.items():
        cells = [f"{x:,}" if isinstance(x, (int, float)) else x for x in row.values()]
        print(f"| {' | '.join([name, *cells])} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument(
        "--batch-sizes", type=int, nargs="+", default=[8, 32, 128], help="sentences"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--out", type=Path, help="a .json for the figures")
    arguments = parser.parse_args()

    sentences = read_sentences(arguments.text, arguments.words)
    n_words = sum(len(words) for words in sentences)
    names = [*arguments.settings, *arguments.peers]
    measured: dict[int, dict[str, Runs]] = {
        size: {name: [] for name in names} for size in arguments.batch_sizes
    }
    with tempfile.TemporaryDirectory() as room:
        file, exported = Path(room, "sentences.json"), Path(room, "exported")
        file.write_text(json.dumps(sentences))
        export(arguments.weights, exported)
        weights = {OURS: arguments.weights}
        for reader in {SIDES[name][0] for name in names} - {OURS}:
            python_of(reader)  # all are ready before any is measured
            weights[reader] = str(weights_of(reader, file) or exported)
        for _, name, size in product(range(arguments.runs), names, arguments.batch_sizes):
            reader, options = SIDES[name]
            shape = {"threads": arguments.threads, "batch_size": size}
            measured[size][name].append(read(reader, weights[reader], file, **shape, **options))

    clock = "processor" if arguments.threads == 1 else "reading"
    table = tabulate(measured, n_words, clock)
    facts = {
        "text": arguments.text.name,
        "words": n_words,
        "sentences": len(sentences),
        "weights": arguments.weights,
        "processor": re.search("model name\\s*: (.*)|$", Path("/proc/cpuinfo").read_text())[1],
        "cores": os.cpu_count(),
        "threads": arguments.threads,
        "runs": arguments.runs,
    }
    print("; ".join(f"{name} {value}" for name, value in facts.items()))
    print_table(table)
    if arguments.out:
        text = json.dumps(facts | {"compared by": clock, "each at its best": table}, indent=1)
        arguments.out.write_text(text + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
