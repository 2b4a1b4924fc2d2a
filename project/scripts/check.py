"""What the last steps of a workflow need, seen before the first: packages, a name, a version."""

from __future__ import annotations

import re
from importlib.util import find_spec

import typer
from packaging.version import InvalidVersion, Version

from spacy_elmo.cli.options import report_errors
from spacy_elmo.util.optional_imports import import_extra

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")  # pip writes others in its own way


@report_errors("The last steps would fail")
def main(name: str, version: str) -> None:
    """End with an error if pictures cannot be drawn, or no package be built of this name and
    version."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"--vars.name is '{name}', but must be letters and digits, with single underscores "
            f"between them."
        )
    try:
        Version(version)
    except InvalidVersion:
        raise ValueError(f"--vars.version is '{version}'; give one such as 1.0.0.") from None
    import_extra("matplotlib", "viz", "pictures are drawn by matplotlib", "the workflow")
    if find_spec("pip") is None:
        raise ImportError("Packages are built and installed by pip: python -m ensurepip")


if __name__ == "__main__":
    typer.run(main)
