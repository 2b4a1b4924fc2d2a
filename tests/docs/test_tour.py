"""The notebook runs from its first cell to its last, and its stored outputs are today's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .pages import DOCS, assert_close


def outputs(notebook: dict[str, Any]) -> list[tuple[str, str]]:
    """Kind and text of each output, of HTML if there is some."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            assert output.get("name", "stdout") == "stdout"
            data = output.get("data", {"text/plain": output.get("text")})
            kind = "text/html" if "text/html" in data else "text/plain"
            found.append((kind, "".join(data[kind])))
    return found


@pytest.mark.slow
def test_tour(tmp_path: Path) -> None:
    """If they differ: `make tour`."""
    for name in ("nbclient", "ipykernel", "matplotlib"):
        pytest.importorskip(name)
    for name in ("run_tour.py", "tour.ipynb"):
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    subprocess.run([sys.executable, tmp_path / "run_tour.py"], check=True, capture_output=True)
    stored, new = (
        outputs(json.loads((folder / "tour.ipynb").read_text(encoding="utf-8")))
        for folder in (DOCS, tmp_path)
    )
    assert [kind for kind, _ in stored] == [kind for kind, _ in new]
    for (kind, before), (_, now) in zip(stored, new, strict=True):
        if kind == "text/plain":
            assert now == before
            continue
        assert_close(now, before)
    assert sum("<svg" in text for _, text in new) >= 2
    tags = next(text for _, text in new if "PRON" in text)
    assert "('play', 'VERB'), ('the', 'DET'), ('play', 'NOUN')" in " ".join(tags.split())
