"""The page on the architecture lists what is used of other packages' private parts, and set for a
whole process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spacy_elmo"
SOURCES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}
TREES = {name: ast.parse(source) for name, source in SOURCES.items()}
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("## Private interfaces") :].split("\n\n")[2]
ROWS = re.findall(r"^\| (.*) \| (.*) \| .* \|$", TABLE, flags=re.MULTILINE)[1:]
LISTED = {  # files by what the first column names
    name: set(re.findall(r"`([^`]+)`", files))
    for names, files in ROWS
    for name in re.findall(r"`([^`]+)`", names)
}


NAMING = {"getattr": 1, "import_module": 0}  # calls with a name among their arguments
PUBLIC = {"_asdict", "_exit", "_fields", "_replace"}  # of named tuples, and of `os`


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in {"_", *PUBLIC}


DEFINED = {
    node.name
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, (ast.FunctionDef, ast.ClassDef))
}


def own_names(file: str) -> set[str]:
    """Private names of functions and classes of the package, and those that a file sets."""
    names = set(DEFINED)
    for node in ast.walk(TREES[file]):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return names


def used(tree: ast.AST) -> Iterator[str]:
    """Private names that are imported from other packages, or are attributes of anything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            yield from (part for part in str(node.module).split(".") if is_private(part))
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr
        elif isinstance(node, ast.Call) and (call := ast.unparse(node.func)) in NAMING:
            name = node.args[NAMING[call]]
            if isinstance(name, ast.Constant):
                yield from filter(is_private, str(name.value).split("."))


def test_private_names_are_listed() -> None:
    """And what is listed is there."""
    for file, tree in TREES.items():
        listed = {name.split(".")[-1] for name, files in LISTED.items() if file in files}
        assert set(used(tree)) - own_names(file) <= listed, file
    for name, files in LISTED.items():
        for file in files:
            assert name.split(".")[-1] in SOURCES[file], f"{file}: {name}"


def test_switches_are_listed() -> None:
    """Where they are called or assigned, or an environment variable is named."""
    switches = [name for name in LISTED if not is_private(name.split(".")[-1])]
    assert len(switches) > 8
    for switch in set(switches) - {"user_data"}:
        called = re.compile(rf'[."]{switch.split(".")[-1]}(\(| = |")')
        files = {file for file, source in SOURCES.items() if called.search(source)}
        assert files == LISTED[switch], switch
