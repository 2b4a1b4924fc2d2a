"""What a pipeline costs, with ELMo and without it: disk, memory, words a second.

    python benchmarks/speed/cost.py TEXT --data DATA [--steps 200] [--words 10000] [--runs 10]

The README's commands train a tagger, a parser and NER on some sentences. Then each pipeline reads
the first words of TEXT, a paragraph a Doc, on one thread, in a process of its own. Printed are the
size of its folder, the peak of that process's memory, all imports included, and words per second
of processor time, the most of some runs; before them, the size of packages on disk. Linux only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from importlib.metadata import files
from pathlib import Path

import spacy
from spacy.tokens import DocBin

sys.path.append(str(Path(__file__).parents[1] / "quality"))

BASE = "python -m spacy init config plain.cfg --lang en --pipeline tagger,parser,ner"
ADD = "python -m spacy elmo add plain.cfg elmo.cfg"
TRAIN = (
    "python -m spacy train {0}.cfg --output {0} --paths.train train.spacy --paths.dev dev.spacy "
    "--training.max_steps {1} --training.eval_frequency {1}"
)
MB = 1e6


def write_data(folder: Path, data: Path) -> None:
    """Sentences with tags and trees, and such with entities."""
    from tasks import read_ewt, read_wnut

    docs = [*itertools.islice(read_ewt(data, "train"), 500)]
    docs += itertools.islice(read_wnut(data, "train"), 500)
    DocBin(docs=docs).to_disk(folder / "train.spacy")
    DocBin(docs=[*docs[:20], *docs[-20:]]).to_disk(folder / "dev.spacy")


def measure(path: str, text: Path, n_words: int, n_runs: int) -> dict[str, float]:
    """MB on disk, MB at the peak, words a second."""
    from inference import read_docs

    nlp = spacy.load(path)
    docs = read_docs(text, n_words)
    texts, seconds = [doc.text for doc in docs], []
    for _ in range(n_runs):
        start = time.process_time()
        for _ in nlp.pipe(texts):
            pass
        seconds.append(time.process_time() - start)
    status = Path("/proc/self/status").read_text()
    return {
        "MB on disk": sum(f.stat().st_size for f in Path(path).rglob("*") if f.is_file()) / MB,
        "MB of memory": int(status.split("VmHWM:")[1].split()[0]) * 1024 / MB,
        "words/s": sum(map(len, docs)) / min(seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    words, runs = arguments.words, arguments.runs
    if arguments.alone:
        print(json.dumps(measure(arguments.alone, arguments.text, words, runs)))
        return
    for package in ("torch", "spacy"):
        sizes = [file.locate().stat().st_size for file in files(package) if file.locate().exists()]
        print(f"{package}: {sum(sizes) / MB:.0f} MB installed")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), arguments.data)
        trainings = [TRAIN.format(name, arguments.steps) for name in ("plain", "elmo")]
        for command in (BASE, ADD, *trainings):
            parts = [sys.executable, *shlex.split(command)[1:]]
            subprocess.run(parts, cwd=folder, env=environment, check=True, capture_output=True)
        for name in ("plain", "elmo"):
            path = str(Path(folder, name, "model-last"))
            command = [sys.executable, __file__, str(arguments.text), "--alone", path]
            command += ["--words", str(words), "--runs", str(runs)]
            found = json.loads(subprocess.check_output(command, env=environment))
            print(name, *(f"{value:,.0f} {unit}" for unit, value in found.items()), sep="; ")


if __name__ == "__main__":
    main()
