"""What the later steps are given, seen before the first."""

from __future__ import annotations

import typer
from packaging.version import InvalidVersion, Version
from paper_tasks.arms import ARMS, TASKS
from wasabi import msg

from .names import check, choose
from .train import SIZES, resolve_weights


def main(size: str, tasks: str, arms: str, weights: str, version: str) -> None:
    """End the program with an error if there is no such size, task, arm or biLM, or if pip would
    not install a package of this version."""
    check("size", size, SIZES)
    choose("tasks", tasks, TASKS)
    choose("arms", arms, ARMS)
    resolve_weights(weights)
    try:
        Version(version)
    except InvalidVersion:
        msg.fail(f"--vars.version: {version!r} is none", "Give one such as 1.0.0.", exits=1)


if __name__ == "__main__":
    typer.run(main)
