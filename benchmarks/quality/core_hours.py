"""What does a core-hour of training buy? Arms from the same start, for the same time.

    python benchmarks/quality/core_hours.py DATA START SHARDS OUT --seconds 1200 ARM …

START is a directory of weights with a head whose vocabulary has the words of DATA/eval_vocab.txt,
SHARDS the text, tokenized. Each ARM is ``name`` or ``name:section.setting=value,…``, as in
``large:training.batch_words=4096,training.learning_rate=0.004``; ``taught:teacher=VECTORS`` also
learns the vectors in a file of `elmo encode --tokenized`. An arm is a run of `elmo pretrain` on one
thread: a first one tells how long a step takes, a second one has as many steps as take --seconds by
the clock of an idle core. The learning rate warms up over the first 5 % of them and falls to zero
over the last 40 %. Then it is measured: the perplexity of --words of each held-out text in DATA,
with the full softmax, restricted to eval_vocab.txt; the probe of names (`probes.py`) on the dev set
of WNUT-17; and a third of BLiMP's pairs (`blimp.py`). OUT/results.jsonl is a file of `results.py`;
arms that are in it are skipped, and an interrupted arm is resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import blimp
import probes
import torch
from perplexities import LM
from results import Results, parse_arm
from thinc.api import Config

TEXTS = ("enwiki", "masc")
PROBE_SEEDS = range(3)
TIMED_STEPS = 60  # of the run that tells how long a step takes
WARM_UP, DECAY = 0.05, 0.4  # of the steps
BASE = {
    "training.batch_words": 2048, "training.learning_rate": 0.002, "training.dropout": 0.0,
    "training.matmul_precision": "highest", "training.head_first": 0,
    "training.eval_words": 1000, "training.log_every": 10, "corpus.buffer_words": 2_000_000,
}  # fmt: skip


def pretrain(folder: Path, settings: dict[str, Any], n_steps: int) -> list[dict[str, Any]]:
    """A run of so many steps, continued if it was interrupted; its log."""
    folder.mkdir(parents=True, exist_ok=True)
    config = Config()
    schedule = {
        "training.max_steps": n_steps, "training.eval_every": n_steps,
        "training.warmup_steps": round(WARM_UP * n_steps),
        "training.decay_steps": round(DECAY * n_steps),
    }  # fmt: skip
    for name, value in (settings | schedule).items():
        section, _, setting = name.partition(".")
        config.setdefault(section, {})[setting] = value
    config.to_disk(folder / "config.cfg")
    run = folder / "run"
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", folder / "config.cfg", run]
    command += ["--resume"] * run.exists()
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return [json.loads(line) for line in (run / "log.jsonl").open(encoding="utf-8")]


def train(arm: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Train one arm; how long it took."""
    _, changes = parse_arm(arm)
    paths = {"weights": args.start, "train": args.shards, "dev": args.shards}
    settings = {f"paths.{name}": str(path) for name, path in paths.items()}
    settings |= {**BASE, "training.seed": args.seed, **changes}
    if path := settings.pop("teacher", None):
        reader = {"@misc": "spacy-elmo.EncodedVectors.v1", "path": path}
        settings["training.teacher"] = reader
    timed = [row for row in pretrain(folder / "timed", settings, TIMED_STEPS) if "seconds" in row]
    first, last = timed[0], timed[-1]
    per_step = (last["seconds"] - first["seconds"]) / (last["step"] - first["step"])
    log = pretrain(folder, settings, max(1, round(args.seconds / per_step)))
    [*_, end] = (row for row in log if "seconds" in row)
    return {"steps": end["step"], "words": end["words"], "seconds": end["seconds"]}


def measure(weights: Path, args: argparse.Namespace) -> dict[str, float]:
    """The mean perplexity of a sample of each held-out text; F1 of names, and BLiMP, in percent."""
    lm = LM.load(str(weights), vocab=args.data / "eval_vocab.txt")
    texts = {name: args.data / "lm" / name / "valid.txt.xz" for name in TEXTS}
    results = {
        name: lm.measure(path, args.words, lang="en")["mean"] for name, path in texts.items()
    }
    elmo = probes.Elmo(str(weights))
    results["names"] = statistics.mean(
        probes.measure(elmo, args.data, "entities", ["all"], seed, "dev")["all"]
        for seed in PROBE_SEEDS
    )
    results["blimp"] = blimp.measure(lm, args.data, every=3)["all"]["mean"]["summed"]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("data", "start", "shards", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("arms", nargs="*")
    parser.add_argument("--seconds", type=float, default=1200, help="each arm, on one core")
    parser.add_argument("--words", type=int, default=60_000, help="of each held-out text")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    results = Results(args.out / "results.jsonl")
    for arm in ["start", *args.arms]:
        unit = {"arm": arm, "seed": args.seed}
        results.get("core hours", unit, None, partial(run, arm, args))


def run(arm: str, args: argparse.Namespace) -> dict[str, float]:
    """Train an arm, if it is not the start, and measure it."""
    if arm == "start":
        return measure(args.start, args)
    folder = args.out / f"{arm.partition(':')[0]}-{args.seed}"
    return {**train(arm, folder, args), **measure(folder / "run" / "model-last", args)}


if __name__ == "__main__":
    main()
