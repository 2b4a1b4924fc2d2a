"""``python -m spacy elmo package``: weights as a Python package, to be used by name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from subprocess import list2cmdline
from typing import TYPE_CHECKING, Annotated

import typer
from packaging.version import Version
from wasabi import msg

from . import options
from .output_directory import output_directory

if TYPE_CHECKING:
    from .bundle import Bundle

PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{dist}"
version = "{version}"
description = {description}
readme = "README.md"
requires-python = ">=3.10"
dependencies = ["spacy-elmo>={ours}"]

[project.entry-points.{group}]
{name} = "{module}"

[tool.setuptools]
packages = ["{module}"]

[tool.setuptools.package-data]
"*" = ["*"]
"""

README = """\
# {name}

{about}. After `pip install` of this package:

```python
import spacy

nlp = spacy.blank({blank})
nlp.add_pipe("elmo", config={{"model": {{"weights": "{name}"}}}})
```
"""


def package_cli(
    sources: options.WeightsIn,
    out: Annotated[Path, typer.Argument(help="Parent directory of the package", metavar="OUT")],
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
    from ..weights.find import EMBEDDED, GROUP, find_weights
    from .bundle import Bundle

    with options.report_errors("Cannot package", as_json=as_json):
        formats = [] if build == "none" else [each.strip() for each in build.split(",")]
        if not {*formats} <= {"sdist", "wheel"}:
            raise ValueError(f"--build is '{build}'; give sdist, wheel, both, or none.")
        if formats and not _is_installed("build"):
            raise ValueError(
                "The package 'build' is not installed: pip install build. Or use --build none, and "
                "install the directory."
            )
        weights = find_weights(options.one(sources))
        meta = weights.card().meta
        name = str(name or meta.get("name") or Path(weights.where).stem)
        if not re.fullmatch(r"[A-Za-z](_?[A-Za-z0-9])*", name) or (EMBEDDED / name).exists():
            raise ValueError(
                f"'{name}' cannot be the name of weights: use letters, digits and, between them, "
                f"single underscores, starting with a letter, and no name of embedded weights. "
                f"Give one with --name."
            )
        version = version or meta.get("version") or "0.0.0"
        try:
            version = str(Version(version))
        except ValueError:
            raise ValueError(
                f"Invalid version: {version!r}. Give one such as 1.0.0 with --version."
            ) from None
        dist, module = f"spacy-elmo-{name.replace('_', '-').lower()}", f"spacy_elmo_{name}"
        directory = out / f"{dist}-{version}"
        project, known = directory / "pyproject.toml", set[str]()
        if project.is_file() and GROUP in project.read_text("utf-8", "replace"):
            # The last three appear when it is built or installed.
            built = {"dist/", "build/", f"{module.lower()}.egg-info/"}
            known = {project.name, "README.md", "LICENSE", f"{module}/", *built}
        path = output_directory(directory, force, known)
        bundle = Bundle.read(weights, lang, vocab, no_head)
        bundle.card.meta |= {"name": name, "version": version}
        bundle.add_warm_state(warm_text)
        bundle.add_statistics(statistics)
        write_package(bundle, path, dist, module, formats)
    files = sorted((directory / "dist").glob("*"))
    if as_json:
        data = {"output": str(directory), "name": name, "version": version}
        options.print_json({**data, "built": list(map(str, files))})
        return
    msg.good(f"Created the package of '{name}'", str(directory))
    for file in files:
        msg.good("Built", str(file))
    msg.info("Install it, then use the name in a config")
    # Whole: without a slash in it, pip would look for a package of that name on the index.
    whole = str([*files, directory][0].resolve())
    print(f"pip install {list2cmdline([whole]) if os.name == 'nt' else quote(whole)}")
    print(f'weights = "{name}"')


def write_package(
    bundle: Bundle, path: Path, dist: str, module: str, formats: Sequence[str]
) -> None:
    """Write the directory of a package with its distributions, whole or not at all.

    Args:
        bundle: weights whose card names them and their version.
        path: of the directory.
        dist: name of the distribution.
        module: name of the Python package.
        formats: of the distributions to build, ``"sdist"`` or ``"wheel"``.

    Raises:
        ValueError: they cannot be built.
    """
    from ..about import __version__
    from ..util.files import atomic_directory
    from ..weights.find import GROUP

    meta = bundle.card.meta
    name, version = meta["name"], meta["version"]
    blank = json.dumps(meta.get("lang") or "xx")
    if "tokenizer" in meta:  # not always the one that the language has in spaCy
        rules = {"nlp": {"tokenizer": {"@tokenizers": meta["tokenizer"]}}}
        blank += f", config={json.dumps(rules)}"
    about = meta.get("description") or f"ELMo weights '{name}' for spacy-elmo"
    about = " ".join(about.split())
    description = json.dumps(about, ensure_ascii=False)  # JSON strings are TOML strings
    project = PYPROJECT.format(
        dist=dist, version=version, description=description, ours=__version__, group=GROUP,
        name=name, module=module,
    )  # fmt: skip
    with atomic_directory(path) as root:
        inside = root / module
        inside.mkdir()
        bundle.save(inside)
        (inside / "__init__.py").write_text(f"__version__ = {version!r}\n", "utf-8")
        (root / "pyproject.toml").write_text(project, "utf-8")
        readme = README.format(name=name, about=about, blank=blank)
        (root / "README.md").write_text(readme, "utf-8")
        if (inside / "LICENSE").exists():
            shutil.copy(inside / "LICENSE", root)
        if formats:
            build_package(root, formats)


def build_package(directory: Path, formats: Sequence[str]) -> None:
    """Build distributions of the package in its ``dist`` directory.

    Raises:
        ValueError: `build` failed.
    """
    command = [sys.executable, "-m", "build", *(f"--{each}" for each in formats), str(directory)]
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
