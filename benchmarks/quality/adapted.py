"""A biLM adapted to the text of each task: what the arm "ELMo, adapted" of `downstream.py` reads.

    python benchmarks/quality/adapted.py OUT --data DATA [--tasks …] [--weights en_sm]

Trains the biLM for one epoch on all training texts of a task, without their labels, with
project/configs/pretrain_adapt.cfg; the dev texts measure its perplexity. Writes a run of
`elmo pretrain --from` to OUT/TASK for each task; one that was stopped is continued, one that is
finished is not trained again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tasks import ENGLISH, TASKS

from spacy_elmo.pretraining.config import read_config
from spacy_elmo.pretraining.train import pretrain

RECIPE = Path(__file__).parents[2] / "project" / "configs" / "pretrain_adapt.cfg"


def adapt(name: str, out: Path, data: Path, weights: str) -> None:
    """Train on the text of a task, or finish a run that was stopped."""
    run, texts, overrides = out / name, out / f"{name}.texts", {"paths.weights": weights}
    for folder in (run, texts):
        folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev"):
        path = texts / f"{split}.txt"
        docs = TASKS[name].read(data, split)
        lines = (" ".join(t.text for t in doc if not t.is_space) for doc in docs)
        path.write_text("".join(f"{line}\n" for line in lines if line), encoding="utf-8")
        overrides[f"paths.{split}"] = str(path)
    pretrain(read_config(RECIPE, overrides), run, resume=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", default="en_sm", help="of the biLM (default: en_sm)")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=ENGLISH)
    args = parser.parse_args()
    for name in args.tasks:
        print(name, flush=True)
        adapt(name, args.out, args.data, args.weights)


if __name__ == "__main__":
    main()
