"""The page on the architecture lists what is used of other packages' private parts, and set for a
whole process; and these parts are still what they were."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import Model, PyTorchShim

from spacy_elmo.pipeline.readings import CHECKSUM

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spacy_elmo"
SOURCES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}
TREES = {name: ast.parse(source) for name, source in SOURCES.items()}
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
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


def own_names(file: str) -> set[str]:
    """Private names of functions and classes of the package, and those that a file sets."""
    every = (node for tree in TREES.values() for node in ast.walk(tree))
    names = {node.name for node in every if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
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


def inherited(module: ModuleType) -> Iterator[str]:
    """Private names of other packages' classes that the classes of a module use or replace."""
    for cls in vars(module).values():
        if not inspect.isclass(cls) or cls.__module__ != module.__name__:
            continue
        theirs: set[str] = set()
        for base in cls.__mro__:
            if base.__module__.split(".")[0] in ("spacy", "thinc", "torch"):
                theirs |= set(filter(is_private, vars(base)))
                try:
                    theirs |= set(re.findall(r"self\.(_[a-z]\w*)", inspect.getsource(base)))
                except (OSError, TypeError):  # of Cython
                    continue
        ours = set(re.findall(r"\.(_[a-z]\w*)|def (_[a-z]\w*)", inspect.getsource(cls)))
        yield from theirs & {name for pair in ours for name in pair if name}


def test_private_names_are_listed() -> None:
    found: dict[str, set[str]] = {}
    for file, tree in TREES.items():
        module = "spacy_elmo." + file.removesuffix(".py").removesuffix("/__init__")
        names = set(used(tree)) - own_names(file)
        if not file.endswith("__main__.py") and file != "__init__.py":
            names |= set(inherited(importlib.import_module(module.replace("/", "."))))
        for name in names:
            found.setdefault(name, set()).add(file)
    listed = {name.split(".")[-1]: files for name, files in LISTED.items()}
    assert found == {name: files for name, files in listed.items() if is_private(name)}


SWITCHES = {
    "torch.set_num_threads": r"\.set_num_threads\(",
    "cudnn.allow_tf32": r"setattr\(switch,",
    "mallopt": r"\.mallopt\(",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": r"environ\.setdefault",
    "PATH": r"environ\[.*\] = (?!=)",
    "nlp.max_length": r"\.max_length =",
    "torch.manual_seed": r"torch\.manual_seed\(",
    "torch.set_float32_matmul_precision": r"torch\.set_float32_matmul_precision\(",
    "signal.signal": r"signal\.signal\(",
    "pooch.get_logger": r"get_logger\(\)\.setLevel",
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_switches_are_listed(switch: str) -> None:
    pattern = re.compile(SWITCHES[switch], flags=re.MULTILINE)
    assert {file for file, source in SOURCES.items() if pattern.search(source)} == LISTED[switch]


# They are what they were


def test_names_of_thinc() -> None:
    """`Model.copy` copies the nodes of a model by `_copy`; a shim holds its model as `_model`."""
    calls = []

    class Node(Model):
        def _copy(self, seen: dict | None = None) -> Model:
            calls.append(seen)
            return self

    def forward(model: Model, X: object, is_train: bool) -> None: ...

    Model("parent", forward, layers=[Node("child", forward)]).copy()
    assert len(calls) == 1
    linear = torch.nn.Linear(1, 1)
    assert PyTorchShim(linear)._model is linear


def test_names_of_the_command_line_and_of_torch() -> None:
    from spacy.cli._util import parse_config_overrides

    assert parse_config_overrides(["--a.b", "1"]) == {"a.b": 1}


@pytest.fixture
def doc() -> Doc:
    return Doc(spacy.blank("en").vocab, words=["The", "bank", "."])


def test_a_key_of_user_data_is_moved(doc: Doc, recwarn: pytest.WarningsRecorder) -> None:
    for each in (other := Doc(doc.vocab, words=["One"]), doc):
        each.user_data[CHECKSUM] = 1
    joined = Doc.from_docs([doc, other])
    assert list(joined.user_data) == [CHECKSUM, (*CHECKSUM[:2], len(doc.text), None)]
    assert not recwarn.list
