"""Pipelines as packages, each with the code of its component inside."""

from __future__ import annotations

import shutil
from pathlib import Path

import paper_tasks
import typer
from paper_tasks.arms import ARMS, TASKS
from spacy.cli.package import package
from wasabi import msg

from .names import choose
from .train import folder

CODE = Path(paper_tasks.__file__).parent


def main(
    run: Path,
    tasks: str = ",".join(TASKS),
    arms: str = "without,input",
    version: str = "1.0.0",
) -> None:
    """Write RUN/packages/en_TASK-VERSION, which pip installs, of each task in the last arm."""
    out = run / "packages"
    out.mkdir(exist_ok=True)
    arm = choose("arms", arms, ARMS)[-1]
    for task in choose("tasks", tasks, TASKS):
        model = folder(run, task, arm) / "model-best"
        package(model, out, name=task, version=version, create_sdist=False, force=True, silent=True)
        inside = out / f"en_{task}-{version}" / f"en_{task}"
        # Modules import each other relatively, so they work in any package.
        for name in ("inputs", "layers", "metrics", "pipes", "corpus", *paper_tasks.__all__):
            shutil.copy(CODE / f"{name}.py", inside)
        start = inside / "__init__.py"
        imported = f"from . import {', '.join(paper_tasks.__all__)}\n"
        start.write_text(imported + start.read_text(encoding="utf-8"), encoding="utf-8")
        msg.good(f"{inside.parent}: pip install it")


if __name__ == "__main__":
    typer.run(main)
