"""``python -m spacy elmo package``: weights as a Python package, found by their name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from packaging.version import InvalidVersion, Version
from wasabi import msg

if TYPE_CHECKING:
    from ..bilm.layout import Weights

FORMATS = ("sdist", "wheel", "none")

PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = {dist}
version = {version}
description = {description}
readme = "README.md"
requires-python = ">=3.10"
dependencies = [{requirement}]

[project.entry-points.spacy_elmo_weights]
{name} = {module}

[tool.setuptools]
packages = [{module}]

[tool.setuptools.package-data]
"*" = ["*"]
"""

README = """\
# {name}

{description}. After `pip install` of this package:

```python
nlp.add_pipe("elmo", config={{"model": {{"weights": "{name}"}}}})
```
"""


def package_cli(
    # fmt: off
    weights: str = typer.Argument(..., help="Name, directory or zip of weights"),
    out: Path = typer.Argument(..., help="Directory for the package", file_okay=False),
    name: str | None = typer.Option(None, "--name", "-n", help="Name that the weights will have; by default that of their card or directory"),
    version: str | None = typer.Option(None, "--version", "-v", help="Version; by default that of the card, or 0.0.0"),
    build: str = typer.Option("sdist", "--build", "-b", help="Comma-separated formats to build: sdist and/or wheel, or none"),
    no_head: bool = typer.Option(False, "--no-head", help="Leave out the language model's softmax and its words"),
    force: bool = typer.Option(False, "--force", "-F", help="Replace a package that is there already"),
    # fmt: on
) -> None:
    """
    Make an installable Python package of a biLM.

    Where it is installed, `weights = "NAME"` finds the biLM. Published weights are converted to
    our own layout, and bring their warm state.
    """
    try:
        formats = [each.strip() for each in build.split(",")]
        if not set(formats) <= set(FORMATS):
            raise ValueError(f"--build is '{build}'; give sdist, wheel, both, or none.")
        directory, name = make_package(weights, out, name, version, no_head, force)
        msg.good(f"Made the package of '{name}'", str(directory))
        for each in formats:
            if each != "none":
                build_package(directory, each)
        files = sorted((directory / "dist").glob("*"))
    except (ValueError, OSError) as error:
        msg.fail("Cannot package", str(error), exits=1)
    for file in files:
        msg.good("Built", str(file))
    msg.info("Use it", f'pip install {[*files, directory][0]}\nweights = "{name}"')


def make_package(
    setting: str, out: Path, name: str | None, version: str | None, no_head: bool, force: bool
) -> tuple[Path, str]:
    """Write the package's directory; it appears whole or not at all.

    Returns:
        The directory, and the name of the weights.

    Raises:
        ValueError: the weights cannot be read, or a setting is wrong.
    """
    from ..about import __version__
    from ..bilm.find import EMBEDDED, find_weights
    from ..bilm.layout import META
    from ..bilm.weights import new_directory

    weights = find_weights(setting)
    meta = weights.card().meta
    name = _checked_name(name or meta.get("name") or Path(weights.where).stem)
    if (EMBEDDED / name).exists():
        raise ValueError(f"'{name}' is the name of an embedded biLM; give another with --name.")
    version = _checked_version(version or meta.get("version") or "0.0.0")
    meta |= {"name": name, "version": version}
    about = str(meta.get("description") or f"ELMo weights '{name}' for spacy-elmo")
    dist, module = f"spacy-elmo-{name.replace('_', '-').lower()}", f"spacy_elmo_{name}"
    directory = out / f"{dist}-{version}"
    if directory.exists() and not force:
        raise ValueError(f"'{directory}' exists already; give --force to replace it.")
    settings = {
        "dist": dist,
        "version": version,
        "description": " ".join(about.split()),
        "requirement": f"spacy-elmo>={__version__}",
        "name": name,
        "module": module,
    }
    # JSON strings are TOML strings.
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in settings.items()}
    with new_directory(directory) as root:
        inside = root / module
        inside.mkdir()
        _put_weights(weights, inside, no_head)
        (inside / META).write_text(json.dumps(meta, indent=2) + "\n", "utf-8")
        (inside / "__init__.py").write_text(f"__version__ = {version!r}\n", "utf-8")
        (root / "pyproject.toml").write_text(PYPROJECT.format(**quoted), "utf-8")
        (root / "README.md").write_text(README.format(**settings), "utf-8")
        if (inside / "LICENSE").exists():
            shutil.copy(inside / "LICENSE", root)
    return directory, name


def _put_weights(weights: Weights, inside: Path, no_head: bool) -> None:
    """Copy or convert the weights, and all that comes with them."""
    from ..bilm.layout import VOCAB
    from ..bilm.weights import HEAD, OwnWeights, save_bilm, save_card
    from ..pretraining.head import load_head, save_head

    model = weights.load()
    head = load_head(weights) if weights.has_head() and not no_head else None
    if isinstance(weights, OwnWeights):
        left_out = {HEAD, VOCAB} if head is None else set()
        for file in weights.path.iterdir():  # lists of sources too: attribution stays with them
            if file.is_file() and file.suffix != ".py" and file.name not in left_out:
                shutil.copyfile(file, inside / file.name)
        if model.config.initial_state == "zero" or weights.has_warm_state():
            return
    else:
        save_card(weights.card(), inside)
        if head is not None:
            save_head(*head, inside)
    model.warm_state()
    save_bilm(model, inside)


def _checked_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(
            f"'{name}' cannot be the name of weights: use letters, digits and underscores, a "
            f"letter first. Give one with --name."
        )
    return name


def _checked_version(version: str) -> str:
    try:
        return str(Version(str(version)))
    except InvalidVersion:
        raise ValueError(
            f"'{version}' is no version as Python packages have it; give one like 1.0.0 with "
            f"--version."
        ) from None


def build_package(directory: Path, kind: str) -> None:
    """Have `build` make a file of the package in its ``dist``.

    Raises:
        ValueError: `build` is not installed, or failed.
    """
    if find_spec("build") is None:
        raise ValueError(
            f"The package is in '{directory}', but building it needs 'build': pip install build. "
            f"Or give --build none, and install the directory itself."
        )
    command = [sys.executable, "-m", "build", f"--{kind}", str(directory)]
    if find_spec("setuptools") is not None:
        command.append("--no-isolation")  # so that it needs no network
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        raise ValueError(f"The package is in '{directory}', but 'build' failed:\n{result.stdout}")
