"""``python -m spacy elmo package``: weights as a Python package, found by their name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import typer
from packaging.version import InvalidVersion, Version
from wasabi import msg

from .exchange import free_place, read_contents, sources_and_target, warm_up, write_contents

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

[project.entry-points.{group}]
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
    paths: list[str] = typer.Argument(
        ...,
        help="Name, directory or zip of weights, or two files (options.json and HDF5), and last the directory for the package",
        metavar="IN... OUT",
    ),
    name: str | None = typer.Option(
        None,
        "--name",
        "-n",
        help="Name that the weights will have; by default that of their card or directory",
    ),
    version: str | None = typer.Option(
        None, "--version", "-v", help="Version; by default that of the card, or 0.0.0"
    ),
    build: str = typer.Option(
        "sdist",
        "--build",
        "-b",
        help="Comma-separated formats to build: sdist and/or wheel, or none",
    ),
    warm_text: Path | None = typer.Option(
        None,
        "--warm-text",
        "-w",
        help="Text of the biLM's language, some 30 sentences or more, to be read for its warm state",
        exists=True,
        dir_okay=False,
    ),
    lang: str | None = typer.Option(
        None, "--lang", "-l", help="Language of the biLM as spaCy has it (nb), noted in its card"
    ),
    vocab: Path | None = typer.Option(
        None,
        "--vocab",
        help="Words of a published head, one a line, if they are not in a vocab.txt beside it",
        exists=True,
        dir_okay=False,
    ),
    no_head: bool = typer.Option(
        False,
        "--no-head",
        help="Leave out the head (the softmax layer that predicts words) and its words",
    ),
    force: bool = typer.Option(
        False,
        "--force",
        "-F",
        help="Replace a package that is there already; a directory of anything else stays",
    ),
    # fmt: on
) -> None:
    """
    Make an installable Python package of a biLM.

    Where it is installed, `weights = "NAME"` finds the biLM. Published weights are converted to
    our own layout, and bring their warm state. Files are built by `build` (pip install build);
    --build none makes the directory alone, which can be installed too.
    """
    try:
        formats = [each.strip() for each in build.split(",")]
        if not set(formats) <= set(FORMATS):
            raise ValueError(f"--build is '{build}'; give sdist, wheel, both, or none.")
        if set(formats) != {"none"} and not _is_installed("build"):
            raise ValueError(
                "The package 'build' is not there, which makes the files: pip install build. Or "
                "give --build none, and install the directory that is made."
            )
        setting, out = sources_and_target(paths)
        directory, name = make_package(
            setting,
            out,
            name=name,
            version=version,
            force=force,
            warm_text=warm_text,
            lang=lang,
            vocab=vocab,
            no_head=no_head,
        )
        msg.good(f"Made the package of '{name}'", str(directory))
        for each in formats:
            if each != "none":
                build_package(directory, each)
        files = sorted((directory / "dist").glob("*"))
    except (ValueError, OSError, ImportError) as error:  # some languages need other packages
        msg.fail("Cannot package", str(error), exits=1)
    for file in files:
        msg.good("Built", str(file))
    msg.info("Install it; then its name is enough in a config")
    print(f"pip install {[*files, directory][0]}")
    print(f'weights = "{name}"')


def make_package(
    setting: str | list[str],
    out: Path,
    *,
    name: str | None,
    version: str | None,
    force: bool,
    warm_text: Path | None,
    lang: str | None,
    vocab: Path | None,
    no_head: bool,
) -> tuple[Path, str]:
    """Write the package's directory; it appears whole or not at all.

    Args:
        setting: see `find_weights`.
        out: where the directory is to be.
        name: of the weights; if None that of their card, or of their directory.
        version: if None that of the card, or 0.0.0.
        force: replace a package of that name.
        warm_text: see `warm_up`.
        lang, vocab, no_head: see `read_contents`.

    Returns:
        The directory, and the name of the weights.

    Raises:
        ValueError: the weights cannot be read, or a setting is wrong.
    """
    from ..about import __version__
    from ..bilm.files import atomic_directory
    from ..bilm.find import EMBEDDED, GROUP, find_weights

    weights = find_weights(setting)
    meta = weights.card().meta
    name = _checked_name(str(name or meta.get("name") or Path(weights.where).stem))
    if (EMBEDDED / name).exists():
        raise ValueError(f"'{name}' is the name of an embedded biLM; give another with --name.")
    version = _checked_version(version or meta.get("version") or "0.0.0")
    about = str(meta.get("description") or f"ELMo weights '{name}' for spacy-elmo")
    dist, module = f"spacy-elmo-{name.replace('_', '-').lower()}", f"spacy_elmo_{name}"
    directory = out / f"{dist}-{version}"
    place = free_place(directory, force, lambda found: _strangers(found, module))
    settings = {
        "dist": dist,
        "version": version,
        "description": " ".join(about.split()),
        "requirement": f"spacy-elmo>={__version__}",
        "group": GROUP,
        "name": name,
        "module": module,
    }
    # JSON strings are TOML strings.
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in settings.items()}
    contents = read_contents(weights, lang=lang, vocab=vocab, no_head=no_head)
    contents.card.meta |= {"name": name, "version": version}
    warm_up(contents, warm_text)
    with atomic_directory(place) as root:
        inside = root / module
        inside.mkdir()
        write_contents(contents, inside)
        (inside / "__init__.py").write_text(f"__version__ = {version!r}\n", "utf-8")
        (root / "pyproject.toml").write_text(PYPROJECT.format(**quoted), "utf-8")
        (root / "README.md").write_text(README.format(**settings), "utf-8")
        if (inside / "LICENSE").exists():
            shutil.copy(inside / "LICENSE", root)
    return directory, name


def _strangers(place: Path, module: str) -> list[str]:
    """What a directory holds beside such a package; all of it if it holds none."""
    from ..bilm.find import GROUP

    names = {file.name for file in place.iterdir()}
    project = place / "pyproject.toml"
    if not (project.is_file() and GROUP in project.read_text("utf-8", "replace")):
        return sorted(names)
    # The last three are made when it is built or installed.
    ours = {
        project.name,
        "README.md",
        "LICENSE",
        module,
        "dist",
        "build",
        f"{module.lower()}.egg-info",
    }
    return sorted(names - ours)


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
        ValueError: `build` failed.
    """
    command = [sys.executable, "-m", "build", f"--{kind}", str(directory)]
    if _is_installed("setuptools"):
        command.append("--no-isolation")  # so that it needs no network
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        raise ValueError(f"The package is in '{directory}', but 'build' failed:\n{result.stdout}")


def _is_installed(name: str) -> bool:
    """Whether a package can be run; a folder of that name, such as ``build``, is none."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None
