"""Processor time to load a biLM, and the most memory that reading a text with it takes.

    python benchmarks/speed/memory.py TEXT WEIGHTS... [--words 25000] [--precision bfloat16]

TEXT is raw text, a paragraph a line; its first sentences are read by ``nlp.pipe``, each as a Doc
that is dropped at once. Memory is the peak of the process, loading included, beyond what it takes
with all imports and a pipeline whose weights are not loaded yet; each WEIGHTS has a process of its
own. ``random_weights.py`` makes some of a published size. Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import spacy

from spacy_elmo.text.shards import read_lines
from spacy_elmo.text.split_text import split_text


def peak() -> int:
    """The most resident bytes of this process since `forget_peak`."""
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def measure(texts: Path, weights: str, precision: str) -> dict[str, float]:
    """Processor seconds to load and to read, bytes at the peak, bytes of the weights in float32.

    Args:
        texts: a file of them, one a line.
        weights, precision: settings of the component.
    """
    import torch

    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo", config={"model": {"weights": weights, "precision": precision}})
    torch.ones(100, 100) @ torch.ones(100, 100)
    forget_peak()
    before = peak()
    start = time.process_time()
    bilm = elmo.bilm.model
    loaded = time.process_time()
    with open(texts, encoding="utf-8") as lines:
        for _ in nlp.pipe(line.rstrip("\n") for line in lines):
            pass
    read = time.process_time()
    return {
        "load": loaded - start,
        "read": read - loaded,
        "peak": peak() - before,
        "size": 4 * sum(p.numel() for p in bilm.parameters()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("weights", nargs="+")
    parser.add_argument("--words", type=int, default=25_000)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(measure(arguments.text, arguments.weights[0], arguments.precision)))
        return
    with tempfile.TemporaryDirectory() as name:
        texts, n_words = Path(name, "sentences.txt"), 0
        with open(texts, "w", encoding="utf-8") as file:
            for words in split_text(spacy.blank("en"), read_lines(arguments.text)):
                file.write(" ".join(words) + "\n")
                n_words += len(words)
                if n_words >= arguments.words:
                    break
        print(f"{n_words:,} words of {arguments.text.name}, {arguments.precision}\n")
        print("| weights | float32 MB | load s | read s | peak MB | peak / float32 |")
        print("|---|---|---|---|---|---|")
        for weights in arguments.weights:
            print_row(texts, weights, arguments.precision)


def print_row(texts: Path, weights: str, precision: str) -> None:
    command = [sys.executable, __file__, str(texts), weights, "--alone", "--precision", precision]
    m = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    print(
        f"| {Path(weights).name} | {m['size'] / 1e6:.0f} | {m['load']:.2f} | {m['read']:.1f} "
        f"| {m['peak'] / 1e6:.0f} | {m['peak'] / m['size']:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
