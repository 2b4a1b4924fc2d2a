"""The listener's settings, compared on dev sets: what the defaults were chosen by.

    python benchmarks/quality/defaults.py OUT --data DATA [--tasks …] [--settings …] [--seeds …]

Tasks, models, batches and steps are those of `downstream.py`, with its smallest numbers of
sentences; the scores are those of the dev set. Results are in OUT, a file of `results.py`; those
that are there are not computed again. The settings without ELMo show what another width or learning
rate gains without it. A mix learns at the rate of the optimizer; it has no rate of its own, and its
dropout is that of single values.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from arms import (
    BAG_OF_WORDS,
    WIDTH,
    Arm,
    attention,
    cnn,
    ensemble,
    fits,
    listener,
    with_elmo,
)
from downstream import measure
from results import Results, fingerprint
from tasks import TASKS


def with_cnn(width: int = WIDTH, learn_rate: float = 0.001, **settings: Any) -> Arm:
    return Arm(with_elmo(listener(**settings), width=width), {}, learn_rate=learn_rate)


def alone(**settings: Any) -> Arm:
    """A listener without a CNN."""
    return Arm(listener(**settings), {})


SETTINGS: dict[str, Arm] = {
    "no ELMo": Arm(cnn()),
    "no ELMo, width 48": Arm(cnn(width=48)),
    "no ELMo, width 192": Arm(cnn(width=192)),
    "no ELMo, learning rate 0.0003": Arm(cnn(), learn_rate=0.0003),
    "no ELMo, learning rate 0.003": Arm(cnn(), learn_rate=0.003),
    "dropout 0": with_cnn(),
    "dropout 0.1": with_cnn(dropout=0.1),
    "dropout 0.25": with_cnn(dropout=0.25),
    "dropout 0.5": with_cnn(dropout=0.5),
    "dropout 0, layer norm": with_cnn(layer_norm=True),
    "dropout 0, λ = 0": with_cnn(mix_l2=0.0),
    "dropout 0, λ = 0.1": with_cnn(mix_l2=0.1),
    "dropout 0, λ = 1": with_cnn(mix_l2=1.0),
    "dropout 0, γ = 0.1": with_cnn(gamma=0.1),
    "dropout 0, γ = 10": with_cnn(gamma=10.0),
    "dropout 0, width 48": with_cnn(width=48),
    "dropout 0, width 192": with_cnn(width=192),
    "dropout 0, learning rate 0.0003": with_cnn(learn_rate=0.0003),
    "dropout 0, learning rate 0.003": with_cnn(learn_rate=0.003),
    "dropout 0, input and output": Arm(with_elmo(listener(), listener()), {}),
    "dropout 0, without a CNN": alone(),
    "layer norm, without a CNN": alone(layer_norm=True),
    "γ = 10, without a CNN": alone(gamma=10.0),
    "dropout 0.25, without a CNN": alone(dropout=0.25),
    "bag of words, no ELMo": Arm(BAG_OF_WORDS),
    "attention, no ELMo": Arm(attention(cnn())),
    "attention, dropout 0": Arm(attention(with_elmo(listener())), {}),
    "attention, layer norm, without a CNN": Arm(attention(listener(layer_norm=True)), {}),
    "ensemble, no ELMo": Arm(ensemble(cnn())),
    "ensemble, dropout 0": Arm(ensemble(with_elmo(listener())), {}),
    "ensemble, without a CNN": Arm(ensemble(listener()), {}),
    "ensemble, layer norm, without a CNN": Arm(ensemble(listener(layer_norm=True)), {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["tagger"])
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--weights", default="en_sm", help="of the biLM (default: en_sm)")
    args = parser.parse_args()
    results, weights = Results(args.out), fingerprint(args.weights)
    scores = defaultdict(list)
    for seed, name, setting in itertools.product(args.seeds, args.tasks, args.settings):
        task, arm = TASKS[name], SETTINGS[setting]
        if not fits(task, arm):
            continue
        of = weights if arm.elmo is not None else None
        unit = {"task": name, "setting": setting, "seed": seed}
        if (found := results.find("settings", unit, of)) is None:
            size = next(iter(task.steps))
            found = measure(task, size, arm, seed, args.data, {}, args.weights, split="dev")
            results.add("settings", unit, of, found)
            print(*unit.values(), f"{found['score']:.2f}", flush=True)
        scores[setting, name].append(found["score"])
    print("| |", " | ".join(args.tasks), "|\n|---|" + "---|" * len(args.tasks))
    for setting in args.settings:
        each = [scores[setting, name] for name in args.tasks]
        cells = [f"{statistics.mean(s):.2f} (n = {len(s)})" if s else "" for s in each]
        print(f"| {setting} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
