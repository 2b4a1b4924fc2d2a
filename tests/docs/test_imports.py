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
ARROWS: dict[str, set[str]] = {
    "util": set(),
    "bilm": {"util"},
    "weights": {"bilm", "util"},
    "text": {"weights", "util"},
    "lm": {"weights", "bilm", "util"},
    "pipeline": {"text", "lm", "weights", "bilm", "util"},
    "compare": {"pipeline", "text", "lm", "weights", "bilm", "util"},
    "pretraining": {"text", "lm", "weights", "bilm", "util"},
    "encoding": {"pipeline", "text", "lm", "weights", "bilm", "util"},
    "senses": {"encoding", "pipeline", "text", "lm", "weights", "bilm", "util"},
    "viz": {"senses", "pretraining", "pipeline", "lm", "weights", "bilm", "util"},
}
WITHOUT_SPACY = ("bilm", "lm")


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
    assert found == {"weights/download", "weights/catalogue"}  # asks for the cache folder alone


def test_no_import_circles() -> None:
    """No module imports itself, through others, inside functions or for type checkers either."""
    graph = {}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        graph[module] = [name for name in imported(module, tree) if name in MODULES]
    assert sum(map(len, graph.values())) > 100
    TopologicalSorter(graph).prepare()
