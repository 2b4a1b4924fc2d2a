"""Words per second of other implementations and models, and of ours, over the same text.

    python benchmarks/peers/speed.py TEXT [--weights en_sm] [--words 10000] [--runs 5]
        [--batch-sizes 8 32 128] [--threads 1] [--busy 0] [--out FILE.json]

TEXT is any UTF-8 text, a paragraph a line, also .gz or .xz. Its sentences, sorted by length, are
read in batches. The archived implementations read the same biLM, from what `python -m spacy elmo
convert` exports. MiniLM (all-MiniLM-L6-v2, which makes vectors of word pieces), en_core_web_sm's
tok2vec and floret's static vectors have weights of their own. Ours reads in float32 and bfloat16,
each also with the compiled kernel; MiniLM by PyTorch in float32, bfloat16 and int8, and by ONNX
Runtime in float32 and int8. For weights of a published size see `random_weights.py`.

Each run is a process of its own, all sides in turn, beside as many others as `--busy` says, which
do nothing but use a processor. Printed are medians of all runs: a table for each size of batches,
one in which each side has the size that is best for it, and one of the fastest side of each, ours
too. Words are spaCy's tokens, for all sides. How many times as fast ours is, is a median of ratios
of the same turn: of processor time on one thread, where other work on the machine matters little,
else by the clock on the wall. The start is that of Python with all imports, and loading from files
to a model that can read, in seconds of processor time; memory is the most that the process had.
`--out` writes the figures of all tables.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass, field
from itertools import product, takewhile
from pathlib import Path
from statistics import median
from typing import Any

import spacy
from exported import export
from peers import CACHE, HERE, OURS, python_of, read, weights_of

from spacy_elmo.text.shards import read_lines
from spacy_elmo.text.split_text import split_text

sys.path.append(str(HERE.parent / "speed"))

from busy import busy_processes


@dataclass
class Side:
    """What is measured.

    Attributes:
        of: whose side it is.
        reader: the peer that `read` starts.
        options: of its reader.
    """

    of: str
    reader: str
    options: dict[str, Any] = field(default_factory=dict)


SETTINGS = {
    "float32": Side(OURS, OURS),
    "bfloat16": Side(OURS, OURS, {"precision": "bfloat16"}),
    "compiled": Side(OURS, OURS, {"compiled": 1}),
    "compiled, bfloat16": Side(OURS, OURS, {"precision": "bfloat16", "compiled": 1}),
}
PEERS = {
    "allennlp": Side("allennlp", "allennlp"),
    "simple_elmo": Side("simple_elmo", "simple_elmo"),
    "bilm": Side("bilm", "bilm"),
    "minilm": Side("minilm", "minilm"),
    "minilm, bfloat16": Side("minilm", "minilm", {"form": "bfloat16"}),
    "minilm, int8": Side("minilm", "minilm", {"form": "int8"}),
    "minilm, onnx": Side("minilm", "minilm_onnx"),
    "minilm, onnx int8": Side("minilm", "minilm_onnx", {"form": "int8"}),
    "en_core_web_sm": Side("en_core_web_sm", "en_core_web_sm"),
    "floret": Side("floret", "floret"),
}
SIDES = SETTINGS | PEERS
Runs = list[dict[str, Any]]  # of one side: what `reader` prints, in turn with the other sides
Table = dict[str, dict[str, Any]]  # rows: title, figures by their columns


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


def figures(runs: Runs, ours: dict[str, Runs], n_words: int, clock: str) -> dict[str, Any]:
    """The row of a side.

    Args:
        runs: of the side.
        ours: those of ours that are compared with it, by the titles of their columns.
        n_words: that each run has read.
        clock: ``"reading"``, on the wall, or ``"processor"``.
    """

    def middle(*names: str) -> float:
        return median(sum(run[name] for name in names) for run in runs)

    row: dict[str, Any] = {
        "version": runs[0]["version"],
        "words/s": round(n_words / middle("reading")),
        "words/s of the processor": round(n_words / middle("processor")),
    }
    for title, own_runs in ours.items():
        pairs = zip(own_runs, runs, strict=True)
        row[title] = round(median(run[clock] / own[clock] for own, run in pairs), 2)
    return row | {
        "start (s)": round(middle("importing", "loading"), 2),
        "memory (MB)": round(middle("memory")),
        "weights (MB)": round(middle("size"), 1),
    }


def tabulate(measured: dict[int, dict[str, Runs]], n_words: int, clock: str) -> dict[str, Table]:
    """All tables by their titles.

    Args:
        measured: by the size of batches, the runs of each side.
        n_words: that each run has read.
        clock: see `figures`.
    """

    def rows(sides: dict[str, Runs]) -> Table:
        ours = {name: runs for name, runs in sides.items() if name in SETTINGS}
        return {name: figures(runs, ours, n_words, clock) for name, runs in sides.items()}

    def time(found: tuple[str, int]) -> float:
        name, size = found
        return median(run[clock] for run in measured[size][name])

    tables = {f"batches of {size}": rows(sides) for size, sides in measured.items()}
    names = list(next(iter(measured.values())))
    best = {name: min(product([name], measured), key=time) for name in names}
    if len(measured) > 1:
        at_best = rows({name: measured[size][name] for name, size in best.values()})
        tables["each at its best"] = {
            name: {"batches of": best[name][1], **row} for name, row in at_best.items()
        }
    fastest: dict[str, tuple[str, int]] = {}
    for name in sorted(names, key=lambda name: time(best[name])):
        fastest.setdefault(SIDES[name].of, best[name])
    own, own_size = fastest[OURS]
    ours = {OURS: measured[own_size][own]}
    tables["the fastest of each"] = {
        of: {
            "side": name,
            "batches of": size,
            **figures(measured[size][name], ours, n_words, clock),
        }
        for of, (name, size) in fastest.items()
    }
    return tables


def print_table(title: str, table: Table) -> None:
    columns = list(next(iter(table.values())))
    print(f"\n| {' | '.join([title, *columns])} |\n|{'---|' * (len(columns) + 1)}")
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
    parser.add_argument("--busy", type=int, default=0, help="processes that keep processors busy")
    parser.add_argument("--out", type=Path, help="a .json for the figures")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where environments are")
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
        for reader in {SIDES[name].reader for name in names} - {OURS}:
            python_of(reader, arguments.cache)  # all are ready before any is measured
            weights[reader] = str(weights_of(reader, arguments.cache, file) or exported)
        with busy_processes(arguments.busy):
            for _, name, size in product(range(arguments.runs), names, arguments.batch_sizes):
                side = SIDES[name]
                shape = {"threads": arguments.threads, "batch_size": size}
                found = read(
                    side.reader,
                    arguments.cache,
                    weights[side.reader],
                    file,
                    **shape,
                    **side.options,
                )
                measured[size][name].append(found)

    clock = "processor" if arguments.threads == 1 else "reading"
    tables = tabulate(measured, n_words, clock)
    facts = {
        "text": arguments.text.name,
        "words": n_words,
        "sentences": len(sentences),
        "weights": arguments.weights,
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": arguments.threads,
        "busy processes": arguments.busy,
        "runs": arguments.runs,
    }
    print("; ".join(f"{name} {value}" for name, value in facts.items()))
    for title, table in tables.items():
        print_table(title, table)
    if arguments.out:
        text = json.dumps(facts | {"compared by": clock, "tables": tables}, indent=1)
        arguments.out.write_text(text + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
