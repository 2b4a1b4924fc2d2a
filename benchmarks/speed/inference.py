"""Words per second of the component over real sentences, and how long one short text takes.

    python benchmarks/speed/inference.py TEXT [--weights en_sm] [--words 50000]
        [--threads 1 2] [--segments auto doc] [--runs 5]

TEXT is any UTF-8 text, a paragraph a line, also .gz or .xz. It is tokenized first; then the
component's `pipe` reads the Docs in each run once with an empty word cache ("first") and once more
with the cache it has filled ("warm"), with each number of threads and each setting of what the biLM
reads at once, in turn; then texts of 22 tokens, whose words are in the cache, one by one. Printed
are the medians of all runs: of processor time on one thread, else by the clock.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import spacy
import torch
from spacy.tokens import Doc

from spacy_elmo.text.files import read_lines

TOKENS = 22  # of a short text


def read_docs(path: Path, n_words: int) -> list[Doc]:
    """The first paragraphs of a text, about so many words of them."""
    nlp = spacy.blank("en")
    docs, words = [], 0
    for line in read_lines(path):
        if line.strip():
            docs.append(nlp.make_doc(line))
            words += len(docs[-1])
            if words >= n_words:
                break
    return docs


def seconds_of(read: Callable[[], object], threads: int) -> float:
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    read()
    return clock() - start


def machine() -> str:
    """Processor, threads and PyTorch, for the table's caption."""
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search("model name\\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    model, threads = found[1] if found else platform.machine(), torch.get_num_threads()
    return f"{model}, {os.cpu_count()} cores, {threads} threads, PyTorch {torch.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--segments", nargs="+", default=["auto"], help="auto, sents, doc")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()

    docs = read_docs(arguments.text, arguments.words)
    n_words = sum(len(doc) for doc in docs)
    short = [doc[:TOKENS].as_doc() for doc in docs if len(doc) >= TOKENS][:200]
    n_types = len({token.orth for doc in docs for token in doc})
    components, bilms = {}, {}
    rows: dict[tuple[str, str, int], list[float]] = {}
    latency: dict[tuple[str, int], list[float]] = {}
    for side in product(arguments.segments, arguments.threads):
        model = dict(zip(("segments", "threads"), side, strict=True), weights=arguments.weights)
        elmo = spacy.blank("en").add_pipe("elmo", config={"model": model})
        list(elmo.pipe(docs[:200]))  # PyTorch's own start
        components[side], bilms[side] = elmo, elmo.model.get_ref("bilm").shims[0].bilm.model
    for _ in range(arguments.runs):
        for side, elmo in components.items():
            bilms[side].word_cache.clear()
            for name in ("first", "warm"):
                seconds = seconds_of(partial(list, elmo.pipe(docs, batch_size=1000)), side[1])
                rows.setdefault((name, *side), []).append(seconds)
            each = (seconds_of(partial(elmo, doc), side[1]) for doc in short)
            latency.setdefault(side, []).extend(each)

    print(f"{arguments.text.name}: {n_words:,} words, {n_types:,} distinct, {len(docs):,} Docs")
    print(f"weights {arguments.weights}; {machine()}; median of {arguments.runs} runs\n")
    print("| pass | segments | threads | words/s |\n|---|---|---|---|")
    for (name, segments, n), seconds in rows.items():
        print(f"| {name} | {segments} | {n} | {n_words / statistics.median(seconds):,.0f} |")
    for (segments, n), seconds in latency.items() if short else ():
        taken = 1000 * statistics.median(seconds)
        print(f"a text of {TOKENS} tokens, {segments}, threads {n}: {taken:.2f} ms")


if __name__ == "__main__":
    main()
