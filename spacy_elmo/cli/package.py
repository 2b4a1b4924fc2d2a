"""``python -m spacy elmo package``: weights as a Python package, to be used by name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from packaging.version import InvalidVersion, Version
from wasabi import msg

from . import options
from .output_directory import output_directory, split_paths

if TYPE_CHECKING:
    from .bundle import Bundle

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
    paths: Annotated[list[str], typer.Argument(help="Name, directory or zip of weights, or two files (options.json and HDF5), then the parent directory of the package", metavar="IN... OUT")],
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name of the weights (default: from their card or directory)")] = None,
    version: Annotated[str | None, typer.Option("--version", "-v", help="Package version (default: from the card, or 0.0.0)")] = None,
    build: Annotated[str, typer.Option("--build", "-b", help="Comma-separated formats to build: sdist and/or wheel, or none")] = "sdist",
    warm_text: options.WarmText = None,
    statistics: options.StatisticsText = None,
    lang: options.WeightsLang = None,
    vocab: options.HeadVocab = None,
    no_head: options.NoHead = False,
    force: Annotated[bool, typer.Option("--force", "-F", help="Replace an existing package; any other directory is left alone")] = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Create an installable Python package for a biLM.

    Where the package is installed, `weights = "NAME"` loads the biLM. Published weights are
    converted to the native layout and include their warm state. Building needs the package `build`
    (pip install build); with --build none only the directory is created, which pip can install.
    """
    from ..weights.find import find_weights
    from .bundle import Bundle

    with options.report_errors("Cannot package", as_json=as_json):
        formats = [each.strip() for each in build.split(",")]
        if not set(formats) <= set(FORMATS):
            raise ValueError(f"--build is '{build}'; give sdist, wheel, both, or none.")
        if set(formats) != {"none"} and not _is_installed("build"):
            raise ValueError(
                "The package 'build' is not installed: pip install build. Or use --build none, and "
                "install the directory."
            )
        setting, out = split_paths(paths)
        weights = find_weights(setting)
        meta = weights.card().meta
        name = _check_name(str(name or meta.get("name") or Path(weights.where).stem))
        version = _check_version(version or meta.get("version") or "0.0.0")
        dist, module = f"spacy-elmo-{name.replace('_', '-').lower()}", f"spacy_elmo_{name}"
        directory = out / f"{dist}-{version}"
        path = output_directory(directory, force, lambda names: _foreign(names, module, directory))
        bundle = Bundle.read(weights, lang, vocab, no_head)
        bundle.card.meta |= {"name": name, "version": version}
        bundle.add_warm_state(warm_text)
        bundle.add_statistics(statistics)
        write_package(bundle, path, dist, module, [f for f in formats if f != "none"])
    files = sorted((directory / "dist").glob("*"))
    if as_json:
        built = list(map(str, files))
        options.print_json(
            {"output": str(directory), "name": name, "version": version, "built": built}
        )
        return
    msg.good(f"Created the package of '{name}'", str(directory))
    for file in files:
        msg.good("Built", str(file))
    msg.info("Install it, then use the name in a config")
    print(f"pip install {[*files, directory][0]}")
    print(f'weights = "{name}"')


def write_package(
    bundle: Bundle, path: Path, dist: str, module: str, formats: Sequence[str] = ()
) -> None:
    """Write the directory of a package with its distributions, whole or not at all.

    Args:
        bundle: weights whose card names them and their version.
        path: of the directory.
        dist: name of the distribution.
        module: name of the Python package.
        formats: of the distributions to build, ``"sdist"`` or ``"wheel"``.

    Raises:
        ValueError: one cannot be built.
    """
    from ..about import __version__
    from ..util.files import atomic_directory
    from ..weights.find import GROUP

    meta = bundle.card.meta
    about = str(meta.get("description") or f"ELMo weights '{meta['name']}' for spacy-elmo")
    settings = {
        "dist": dist,
        "version": meta["version"],
        "description": " ".join(about.split()),
        "requirement": f"spacy-elmo>={__version__}",
        "group": GROUP,
        "name": meta["name"],
        "module": module,
    }
    # JSON strings are TOML strings.
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in settings.items()}
    with atomic_directory(path) as root:
        inside = root / module
        inside.mkdir()
        bundle.save(inside)
        (inside / "__init__.py").write_text(f"__version__ = {meta['version']!r}\n", "utf-8")
        (root / "pyproject.toml").write_text(PYPROJECT.format(**quoted), "utf-8")
        (root / "README.md").write_text(README.format(**settings), "utf-8")
        if (inside / "LICENSE").exists():
            shutil.copy(inside / "LICENSE", root)
        for each in formats:
            build_package(root, each)


def _foreign(names: set[str], module: str, directory: Path) -> set[str]:
    """The names in a directory that do not belong to such a package; all if it is none."""
    from ..weights.find import GROUP

    project = directory / "pyproject.toml"
    if not (project.is_file() and GROUP in project.read_text("utf-8", "replace")):
        return names
    # The last three appear when it is built or installed.
    built = {"dist/", "build/", f"{module.lower()}.egg-info/"}
    return names - {project.name, "README.md", "LICENSE", f"{module}/", *built}


def _check_name(name: str) -> str:
    from ..weights.find import EMBEDDED

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(
            f"'{name}' cannot be the name of weights: use letters, digits and underscores, "
            f"starting with a letter. Give one with --name."
        )
    if (EMBEDDED / name).exists():
        raise ValueError(f"'{name}' is the name of an embedded biLM. Give another with --name.")
    return name


def _check_version(version: str) -> str:
    try:
        return str(Version(str(version)))
    except InvalidVersion:
        raise ValueError(
            f"'{version}' is not a Python package version; give one like 1.0.0 with --version."
        ) from None


def build_package(directory: Path, kind: str) -> None:
    """Build a distribution of the package in its ``dist`` directory.

    Raises:
        ValueError: `build` failed.
    """
    command = [sys.executable, "-m", "build", f"--{kind}", str(directory)]
    if _is_installed("setuptools"):
        command.append("--no-isolation")  # so that it needs no network
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        raise ValueError(
            f"'build' failed, and no package was written; --build none leaves it out.\n{result.stdout}"
        )


def _is_installed(name: str) -> bool:
    """Tell whether a package can be run; a folder of its name, such as ``build``, does not count."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None
