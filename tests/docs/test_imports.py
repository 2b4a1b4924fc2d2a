"""Imports follow the arrows of the page on the architecture."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "spacy_elmo"
MODULES = {
    tuple(path.relative_to(PACKAGE).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")
}
# What each folder may import, beside itself. The modules on top of the folders may import all.
ARROWS = {
    "bilm": set(),
    "lm": {"bilm"},
    "pipeline": {"lm", "bilm"},
    "pretraining": {"lm", "bilm", "progress"},
    "viz": {"senses", "clusters", "pretraining", "pipeline", "lm", "bilm"},
    "encoding": {"readers", "pipeline", "pretraining", "lm", "bilm", "progress"},
}
WITHOUT_SPACY = ("bilm", "lm", "pretraining")


def imported(module: tuple[str, ...], tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """What a module's import statements name: parts of a path below the package if it is ours,
    else the full name of the other package with an empty part before it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (("", *alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield ("", *str(node.module).split("."))
        elif isinstance(node, ast.ImportFrom):
            start = (*module[: len(module) - node.level], *filter(None, [node.module or ""]))
            start = tuple(part for name in start for part in name.split("."))
            for alias in node.names:
                full = (*start, alias.name)
                yield full if full in MODULES or not start else start


@pytest.mark.parametrize("folder", ARROWS)
def test_folders_import_along_the_arrows(folder: str) -> None:
    for module, path in MODULES.items():
        if module[0] != folder:
            continue
        for name in imported(module, ast.parse(path.read_text(encoding="utf-8"))):
            if name[0]:
                assert name[0] in {folder, "about", *ARROWS[folder]}, f"{path}: {'.'.join(name)}"
            elif folder in WITHOUT_SPACY:
                assert name[1] not in ("spacy", "thinc", "spacy_elmo"), f"{path}: {name[1]}"


def test_only_one_file_fetches() -> None:
    network = {"pooch", "requests", "urllib3", "http", "ftplib", "httpx", "aiohttp"}
    found = {
        "/".join(module)
        for module, path in MODULES.items()
        for name in imported(module, ast.parse(path.read_text(encoding="utf-8")))
        if not name[0] and (name[1] in network or name[1:3] == ("urllib", "request"))
    }
    assert found == {"cli/download"}


def test_no_import_circles() -> None:
    """No module needs itself to be imported, through others either; imports inside functions and
    for type checkers only do not count."""
    graph = {}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
        graph[module] = [name for name in imported(module, tree) if name in MODULES]
    assert sum(map(len, graph.values())) > 100
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    "folder", ["bilm", "lm", "pipeline", "pretraining", "encoding", "cli", "viz"]
)
def test_files_fit_on_a_few_screens(folder: str) -> None:
    lengths = {
        str(path): len(path.read_text(encoding="utf-8").splitlines())
        for module, path in MODULES.items()
        if module[0] == folder
    }
    assert lengths
    assert {name: n for name, n in lengths.items() if n > 300} == {}
