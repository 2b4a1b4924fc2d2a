"""The page on the architecture names the files and functions that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spacy_elmo"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def tree() -> list[Path]:
    """Files and folders of the indented tree, from the root of the repository."""
    [block] = re.findall(r"^```text\n(spacy_elmo/\n.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    paths: list[Path] = []
    folders: list[str] = []
    for line in block.splitlines():
        indent, name = re.match(r"( *)(\S+)", line).groups()
        folders[len(indent) // 2 :] = [name]
        paths.append(Path(*folders))
    return paths


def definitions(source: str) -> set[str]:
    """Names of the functions, classes and methods (`Class.method`) of a module."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            names |= {f"{node.name}.{function.name}" for function in functions}
    return names


def test_tree_names_what_exists() -> None:
    paths = tree()
    assert [str(path) for path in paths if not (ROOT / path).exists()] == []
    assert len(set(paths)) == len(paths)


def test_tree_names_every_module() -> None:
    """All but empty ones."""
    modules = {path.relative_to(ROOT) for path in PACKAGE.rglob("*.py") if path.stat().st_size}
    assert modules - set(tree()) == set()


def test_where_is() -> None:
    """Each row of the table names a file and functions or classes defined in it."""
    table = PAGE[PAGE.index("| Where is") :].split("\n\n")[0]
    rows = re.findall(r"^\| [^|]+ \| `([\w/]+\.py)` \| ([^|]*) \|$", table, flags=re.MULTILINE)
    assert len(rows) == len(table.splitlines()) - 2 > 15
    for file, names in rows:
        found = definitions((PACKAGE / file).read_text(encoding="utf-8"))
        missing = set(re.findall(r"`([\w.]+)`", names)) - found
        assert not missing, f"{file}: {missing}"
