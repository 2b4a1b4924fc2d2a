"""How long one short text takes, and where the time goes.

    python benchmarks/speed/latency.py TEXT [--weights en_sm] [--tokens 22] [--texts 200]
        [--runs 5]

Each text is the first tokens of a paragraph of TEXT, and goes alone through a blank pipeline with
the component, on one thread and with its words in the cache. The component computes in float32, by
the compiled kernel, and by that in bfloat16, in turn. Printed are medians, in milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import spacy
from inference import METHODS, machine, read_docs, timed

SETTINGS: dict[str, dict[str, Any]] = {
    "float32": {},
    "compiled": {"compiled": True},
    "compiled, bfloat16": {"compiled": True, "precision": "bfloat16"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--tokens", type=int, default=22)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    n = arguments.tokens
    docs = [doc for doc in read_docs(arguments.text, 10**6) if len(doc) >= n][: arguments.texts]
    texts = [doc[:n].text for doc in docs]

    rows: dict[str, list[dict[str, float]]] = {name: [] for name in SETTINGS}
    pipelines = {}
    for name, settings in SETTINGS.items():
        nlp = pipelines[name] = spacy.blank("en")
        model = {"weights": arguments.weights, "threads": 1, **settings}
        nlp.add_pipe("elmo", config={"model": model})
        for text in texts:
            nlp(text)  # fills the word cache
    for _ in range(arguments.runs):
        for name, nlp in pipelines.items():
            for text in texts:
                seconds = {"cnn": 0.0, "lstm": 0.0, "tokenizer": 0.0}
                with ExitStack() as stack:
                    for owner, method, part in METHODS:
                        stack.enter_context(timed(owner, method, part, seconds))
                    start = time.perf_counter()
                    doc = nlp.make_doc(text)
                    seconds["tokenizer"] = time.perf_counter() - start
                    nlp(doc)
                    seconds["total"] = time.perf_counter() - start
                rows[name].append(seconds)

    print(f"{len(texts)} texts of {n} tokens, {arguments.runs} times; {machine()}, 1 used\n")
    print("| | total | LSTM | tokenizer | rest |\n|---|---|---|---|---|")
    for name, times in rows.items():
        total, lstm, tokenizer = (
            1000 * statistics.median(each[part] for each in times)
            for part in ("total", "lstm", "tokenizer")
        )
        rest = total - lstm - tokenizer
        print(f"| {name} | {total:.2f} | {lstm:.2f} | {tokenizer:.3f} | {rest:.2f} |")


if __name__ == "__main__":
    main()
