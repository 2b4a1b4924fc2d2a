"""A pipeline as a package, with the code of its component inside."""

from __future__ import annotations

import shutil
from pathlib import Path

import paper_tasks
import typer
from spacy.cli.package import package
from wasabi import msg

from .train import folder

CODE = Path(paper_tasks.__file__).parent


def main(
    run: Path, task: str = "roles", arms: str = "without,input", version: str = "1.0.0"
) -> None:
    """Write RUN/packages/en_TASK-VERSION, which pip installs, of the last arm."""
    model = folder(run, task, arms.split(",")[-1]) / "model-best"
    out = run / "packages"
    out.mkdir(exist_ok=True)
    package(model, out, name=task, version=version, create_sdist=False, force=True, silent=True)
    inside = out / f"en_{task}-{version}" / f"en_{task}"
    # Modules import each other relatively, so they work in any package.
    for name in ("inputs", "layers", "metrics", "pipes", "corpus", *paper_tasks.__all__):
        shutil.copy(CODE / f"{name}.py", inside)
    start = inside / "__init__.py"
    text = start.read_text(encoding="utf-8")
    imported = f"from . import {', '.join(paper_tasks.__all__)}\n"
    start.write_text(imported + text, encoding="utf-8")
    msg.good(f"{inside.parent}: pip install it")


if __name__ == "__main__":
    typer.run(main)
