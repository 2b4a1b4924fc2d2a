"""Time to load a biLM, and the most memory that reading sentences with it takes.

    python benchmarks/memory.py TEXT WEIGHTS... [--sentences 512]

TEXT is raw text, a paragraph a line; its first sentences are read by ``nlp.pipe``, each as a Doc
that is dropped at once. Memory is the peak of the process, loading included, beyond what it holds
with spaCy, PyTorch and a blank pipeline alone; each WEIGHTS has a process of its own. Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import spacy

from spacy_elmo.pipeline.segments import split_text
from spacy_elmo.pretraining.data.shards import read_lines


def peak() -> int:
    """The most resident bytes of this process since `forget_peak`."""
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def measure(weights: str, texts: list[str]) -> dict[str, float]:
    """Seconds to load, seconds to read, bytes at the peak, bytes of the weights in float32."""
    import torch

    nlp = spacy.blank("en")
    torch.ones(100, 100) @ torch.ones(100, 100)
    forget_peak()
    before = peak()
    elmo = nlp.add_pipe("elmo", config={"model": {"weights": weights}})
    start = time.perf_counter()
    bilm = elmo.model.get_ref("bilm").shims[0].bilm
    loaded = time.perf_counter()
    for _ in nlp.pipe(texts):
        pass
    read = time.perf_counter()
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
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sentences = split_text(spacy.blank("en"), read_lines(arguments.text))
    texts = [" ".join(words) for words in islice(sentences, arguments.sentences)]
    if arguments.alone:
        print(json.dumps(measure(arguments.weights[0], texts)))
        return
    print(f"{len(texts)} sentences of {arguments.text.name}\n")
    print("| weights | float32 MB | load s | read s | peak MB | peak / float32 |")
    print("|---|---|---|---|---|---|")
    for weights in arguments.weights:
        command = [sys.executable, __file__, str(arguments.text), weights, "--alone"]
        command += ["--sentences", str(arguments.sentences)]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        m = json.loads(result.stdout)
        print(
            f"| {Path(weights).name} | {m['size'] / 1e6:.0f} | {m['load']:.2f} | {m['read']:.1f} "
            f"| {m['peak'] / 1e6:.0f} | {m['peak'] / m['size']:.2f} |"
        )


if __name__ == "__main__":
    main()
