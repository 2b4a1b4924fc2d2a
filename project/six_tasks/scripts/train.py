"""Each task in each arm: the same model, data, seed and steps."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import typer
from paper_tasks.arms import ARMS, TASKS, make_config
from spacy.cli.train import train
from wasabi import msg

from spacy_elmo.compare.arms import checksum
from spacy_elmo.weights.find import find_weights

from .names import choose


class Size(NamedTuple):
    """How much a run trains; a share of the steps of each task, and of the Docs of dev sets."""

    steps: float = 1.0
    dev_limit: int = 0
    evaluations: int = 10


FEWEST = 60  # steps
SIZES = {"tiny": Size(0.0, 0, 1), "small": Size(0.25, 200, 2), "full": Size()}


def main(
    run: Path,
    size: str = "full",
    tasks: str = ",".join(TASKS),
    arms: str = "without,input",
    weights: str = "en_sm",
    steps: int = 0,
    seed: int = 0,
) -> None:
    """Write RUN/models/TASK-ARM; those that are finished stay."""
    choose("size", size, SIZES)
    chosen, weights = SIZES[size], resolve_weights(weights)
    for task in choose("tasks", tasks, TASKS):
        for arm in choose("arms", arms, ARMS):
            out = folder(run, task, arm)
            corpus = (run / "corpus" / task).resolve()
            files = {split: corpus / f"{split}.spacy" for split in ("train", "dev")}
            how = {"weights": weights, "seed": seed, "dev_limit": chosen.dev_limit}
            most = make_config(task, arm, **files, **how)["training"]["max_steps"]
            n = max(FEWEST, round(chosen.steps * most))
            n = min(n, steps or n)
            config = make_config(
                task, arm, steps=n, eval_every=max(1, n // chosen.evaluations), **files, **how
            )
            finished = out / "finished.txt"  # spaCy writes models before the end of a training
            has_elmo = "elmo" in config["components"]
            trained = checksum(config, files.values(), weights if has_elmo else None)
            if finished.exists() and finished.read_text("utf-8") == trained:
                msg.info(f"{out} is trained already")
                continue
            finished.unlink(missing_ok=True)
            msg.divider(f"{task}, {arm}")
            out.mkdir(parents=True, exist_ok=True)
            config.to_disk(out / "config.cfg")
            train(out / "config.cfg", out)
            finished.write_text(trained, encoding="utf-8")


def resolve_weights(weights: str) -> str:
    """A name, or an absolute path.

    Raises:
        ValueError: there are no such weights.
    """
    if Path(weights).exists():
        weights = str(Path(weights).resolve())
    find_weights(weights)
    return weights


def folder(run: Path, task: str, arm: str) -> Path:
    return run / "models" / f"{task}-{arm.replace(' ', '_')}"


if __name__ == "__main__":
    typer.run(main)
