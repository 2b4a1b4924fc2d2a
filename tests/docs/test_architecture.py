"""What the page on the architecture says of the package: its files and functions, the arrows along
which they import each other, and what is used of other packages' private parts or set for a whole
process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SOURCES = {
    path.relative_to(ROOT / "spacy_elmo").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "spacy_elmo").rglob("*.py"))
}
TREES = {name: ast.parse(source) for name, source in SOURCES.items()}

# Files and functions


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


def definitions(file: str) -> set[str]:
    """Names of the functions, classes and methods (`Class.method`) of a module."""
    names = set()
    for node in TREES[file].body:
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
    modules = {Path("spacy_elmo", name) for name, source in SOURCES.items() if source}
    assert modules - set(tree()) == set()


def test_where_is() -> None:
    """Each row of the table names a file and functions or classes defined in it."""
    table = PAGE[PAGE.index("| Where is") :].split("\n\n")[0]
    rows = re.findall(r"^\| [^|]+ \| `([\w/]+\.py)` \| ([^|]*) \|$", table, flags=re.MULTILINE)
    assert len(rows) == len(table.splitlines()) - 2 > 15
    for file, names in rows:
        missing = set(re.findall(r"`([\w.]+)`", names)) - definitions(file)
        assert not missing, f"{file}: {missing}"


# Imports

MODULES = {tuple(name.removesuffix(".py").split("/")): tree for name, tree in TREES.items()}
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
    for module, tree in MODULES.items():
        for name in imported(module, tree) if module[0] == folder else ():
            said = f"{'/'.join(module)}: {'.'.join(name)}"
            if name[0]:
                assert name[0] in {folder, "about", *ARROWS[folder]}, said
            elif folder in WITHOUT_SPACY:
                assert name[1] not in ("spacy", "thinc", "spacy_elmo"), said


def test_only_one_file_fetches() -> None:
    network = {"pooch", "requests", "urllib3", "http", "ftplib", "httpx", "aiohttp"}
    found = {
        "/".join(module)
        for module, tree in MODULES.items()
        for name in imported(module, tree)
        if not name[0] and (name[1] in network or name[1:3] == ("urllib", "request"))
    }
    assert found == {"weights/download", "weights/catalogue"}  # asks for the cache folder alone


def test_no_import_circles() -> None:
    """No module imports itself, through others, inside functions or for type checkers either."""
    graph = {
        module: [name for name in imported(module, tree) if name in MODULES]
        for module, tree in MODULES.items()
    }
    assert sum(map(len, graph.values())) > 100
    TopologicalSorter(graph).prepare()


# Private interfaces

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
