"""The data of the tasks as .spacy files."""

from __future__ import annotations

from pathlib import Path

import typer
from paper_tasks.arms import TASKS
from paper_tasks.datasets import write_corpus
from wasabi import msg

from spacy_elmo.cli.options import report_errors

from .names import choose
from .train import SIZES


@report_errors("Cannot read the data")
def main(run: Path, size: str = "full", local: str = "", tasks: str = ",".join(TASKS)) -> None:
    """Write RUN/corpus/TASK/{train,dev,test}.spacy; those that are there stay."""
    choose("size", size, SIZES)
    if size == "tiny":
        local = "tiny"  # sentences that come with the project
    for task in choose("tasks", tasks, TASKS):
        write_corpus(run / "corpus" / task, task, Path(local) if local else None)
        msg.good(f"{task}: {run / 'corpus' / task}")


if __name__ == "__main__":
    typer.run(main)
