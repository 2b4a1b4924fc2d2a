"""Each task in each arm: the same model, data, seed and steps."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import typer
from paper_tasks.arms import ARMS, TASKS, make_config
from spacy.cli.train import train
from wasabi import msg

from spacy_elmo.weights.find import find_weights

from .names import check, choose


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
    check("size", size, SIZES)
    chosen = SIZES[size]
    weights = resolve_weights(weights)
    checksum = checksum_of(weights)
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
            finished = out / "finished.cfg"  # spaCy writes models before the end of a training
            trained = f"{config.to_str()}# {(corpus / 'source.txt').read_text('utf-8')}\n"
            if "elmo" in config["components"]:
                trained += f"# {checksum}\n"
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
    """A name, or an absolute path. If there are no such weights, the program ends with an error."""
    if Path(weights).exists():
        weights = str(Path(weights).resolve())
    try:
        find_weights(weights)
    except ValueError as error:
        hint = f"As a path, they are {Path(weights).resolve()}."
        msg.fail("Cannot read --vars.weights", f"{error} {hint}", exits=1)
    return weights


def checksum_of(weights: str) -> str:
    """Of all files of a biLM: one in the same directory may have been trained further."""
    found = sha256()
    for file in find_weights(weights).files():
        found.update(file.read_bytes())
    return found.hexdigest()


def folder(run: Path, task: str, arm: str) -> Path:
    return run / "models" / f"{task}-{arm.replace(' ', '_')}"


if __name__ == "__main__":
    typer.run(main)
