"""The data of the tasks as .spacy files."""

from __future__ import annotations

from pathlib import Path

import typer
from paper_tasks.arms import TASKS
from paper_tasks.datasets import write_corpus
from wasabi import msg

from .names import check, choose
from .train import SIZES


def main(run: Path, size: str = "full", local: str = "", tasks: str = ",".join(TASKS)) -> None:
    """Write RUN/corpus/TASK/{train,dev,test}.spacy; those that are there stay."""
    check("size", size, SIZES)
    assets = None if size == "tiny" else Path("assets")
    for task in choose("tasks", tasks, TASKS):
        try:
            write_corpus(run / "corpus" / task, task, Path(local) if local else None, assets)
        except ValueError as error:
            msg.fail(f"Cannot read the data of {task}", str(error), exits=1)
        msg.good(f"{task}: {run / 'corpus' / task}")


if __name__ == "__main__":
    typer.run(main)
