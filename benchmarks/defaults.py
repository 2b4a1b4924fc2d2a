"""The listener's settings, compared on dev sets: what the defaults were chosen by.

    python benchmarks/defaults.py OUT --data DATA [--tasks …] [--settings …] [--seeds …]

Tasks, models, batches and steps are those of `downstream.py`, with its smallest numbers of
sentences; the scores are those of the dev set. Each result is a line in OUT; those that are there
are not computed again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from pathlib import Path
from typing import Any

from arms import Arm, cnn, listener, with_elmo
from downstream import measure
from tasks import TASKS


def with_cnn(**settings: Any) -> dict[str, Any]:
    return with_elmo(listener(**settings))


BAG_OF_WORDS = {
    "@architectures": "spacy.TextCatBOW.v3",
    "exclusive_classes": True,
    "length": 262144,
    "ngram_size": 1,
    "no_output_layer": False,
}


def ensemble(tok2vec: dict[str, Any]) -> dict[str, Any]:
    """spaCy's default text classifier: attention over token vectors, beside a bag of words."""
    return {
        "@architectures": "spacy.TextCatEnsemble.v2",
        "linear_model": BAG_OF_WORDS,
        "tok2vec": tok2vec,
    }


SETTINGS: dict[str, dict[str, Any]] = {
    "no ELMo": cnn(),
    "dropout 0": with_cnn(dropout=0.0),
    "dropout 0.1": with_cnn(dropout=0.1),
    "dropout 0.25": with_cnn(dropout=0.25),
    "dropout 0.5": with_cnn(dropout=0.5),
    "dropout 0, layer norm": with_cnn(dropout=0.0, layer_norm=True),
    "dropout 0, λ = 0.1": with_cnn(dropout=0.0, mix_l2=0.1),
    "dropout 0, λ = 1": with_cnn(dropout=0.0, mix_l2=1.0),
    "dropout 0, input and output": with_elmo(listener(dropout=0.0), listener(dropout=0.0)),
    "dropout 0, without a CNN": listener(dropout=0.0),
    "bag of words, no ELMo": BAG_OF_WORDS,
    "ensemble, no ELMo": ensemble(cnn()),
    "ensemble, dropout 0": ensemble(with_cnn(dropout=0.0)),
    "ensemble, without a CNN": ensemble(listener(dropout=0.0)),
    "ensemble, layer norm, without a CNN": ensemble(listener(dropout=0.0, layer_norm=True)),
    "layer norm, without a CNN": listener(dropout=0.0, layer_norm=True),
    "γ = 10, without a CNN": listener(dropout=0.0, gamma=10.0),
    "dropout 0.25, without a CNN": listener(dropout=0.25),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["tagger"])
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    args = parser.parse_args()
    lines = args.out.read_text("utf-8").splitlines() if args.out.exists() else []
    done = {tuple(key): score for *key, score in map(json.loads, lines)}
    for seed, name, setting in itertools.product(args.seeds, args.tasks, args.settings):
        if (name, setting, seed) in done:
            continue
        task = TASKS[name]
        size = next(iter(task.steps))
        arm = Arm(SETTINGS[setting], None if "no ELMo" in setting else {})
        result = measure(task, size, arm, seed, args.data, {}, split="dev")
        done[name, setting, seed] = result["score"]
        with args.out.open("a", encoding="utf-8") as file:
            print(json.dumps([name, setting, seed, result["score"]], ensure_ascii=False), file=file)
        print(
            name, setting, seed, f"{result['score']:.2f}", f"{result['seconds']:.0f} s", flush=True
        )
    print("| |", " | ".join(args.tasks), "|\n|---|" + "---|" * len(args.tasks))
    for setting in SETTINGS:
        scores = [
            [s for (n, k, _), s in done.items() if (n, k) == (t, setting)] for t in args.tasks
        ]
        cells = [f"{statistics.mean(each):.2f}" if each else "" for each in scores]
        print(f"| {setting} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
