"""The data of the tasks as .spacy files."""

from __future__ import annotations

from pathlib import Path

import typer
from paper_tasks.arms import TASKS
from paper_tasks.datasets import write_corpus
from wasabi import msg


def main(run: Path, size: str = "full", local: str = "", tasks: str = ",".join(TASKS)) -> None:
    """Write RUN/corpus/TASK/{train,dev,test}.spacy; those that are there stay."""
    for task in tasks.split(","):
        out = run / "corpus" / task
        write_corpus(out, task, Path(local) if local else None)
        msg.good(f"{task}: {out}")


if __name__ == "__main__":
    typer.run(main)
