"""What the later steps are given, seen before the first."""

from __future__ import annotations

import typer
from packaging.version import InvalidVersion, Version
from paper_tasks.arms import ARMS, TASKS

from spacy_elmo.cli.options import report_errors
from spacy_elmo.util.optional_imports import import_extra

from .names import choose
from .train import SIZES, resolve_weights


@report_errors("The later steps would fail")
def main(size: str, tasks: str, arms: str, weights: str, version: str) -> None:
    """End with an error if there is no such size, task, arm or biLM, if coreference cannot be
    scored, or if pip would not install a package of this version."""
    choose("size", size, SIZES)
    chosen = choose("tasks", tasks, TASKS)
    choose("arms", arms, ARMS)
    resolve_weights(weights)
    if {"coreference", "gap"} & set(chosen):
        import_extra("scipy", "viz", "coreference is scored by scipy", "the workflow")
    try:
        Version(version)
    except InvalidVersion:
        raise ValueError(f"--vars.version: {version!r} is none. Give one such as 1.0.0.") from None


if __name__ == "__main__":
    typer.run(main)
