"""The messages on the page of troubleshooting are those that the package has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def texts(tree: ast.AST) -> Iterator[str]:
    """The strings of a module, with a … where a value is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [getattr(part, "value", None) for part in node.values]
            yield "".join(part if isinstance(part, str) else "…" for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_messages() -> None:
    there = [
        text
        for path in (ROOT / "spacy_elmo").rglob("*.py")
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
    ]
    rows = re.findall(r"^\| (`.*?) \| .* \|$", PAGE, flags=re.MULTILINE)
    messages = [m for row in rows if "(spaCy's)" not in row for m in re.findall(r"`(.*?)`", row)]
    assert len(messages) > 15
    for message in messages:
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in message.split("…")))
        assert any(pattern.search(text) for text in there), message
