"""Distributions, built as frontends build them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS: dict[str, tuple[str, str]] = run_path(str(ROOT / "setup.py"))["TARGETS"]
CODE = (
    "import sys; from hatchling import build; getattr(build, f'build_{sys.argv[1]}')(sys.argv[2])"
)


def tracked() -> set[str]:
    """The files of the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        pytest.skip("needs a clone of the repository")
    return {name for name in result.stdout.split("\0") if name and (ROOT / name).is_file()}


def copy_to(folder: Path) -> Path:
    """The files of the repository in another folder, of another time and other permissions."""
    for name in tracked():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy)
        copy.chmod((ROOT / name).stat().st_mode & 0o700)
    return folder


def build(kind: str, out: Path, folder: Path = ROOT, code: str = CODE, **variables: str) -> Path:
    """A distribution of a folder.

    Args:
        kind: ``"sdist"``, ``"wheel"`` or ``"editable"``.
        variables: of the environment.
    """
    for name in ("hatchling", "hatch_fancy_pypi_readme"):
        pytest.importorskip(name)
    made = {**os.environ, "SPACY_ELMO_TARGET": "any", **variables}
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", code, kind, str(out)]
    subprocess.run(command, cwd=folder, env=made, check=True, capture_output=True, text=True)
    [path] = out.iterdir()
    return path


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        assert len(set(archive.namelist())) == len(archive.namelist())
        return {name: archive.read(name) for name in archive.namelist()}
