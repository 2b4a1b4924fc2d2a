"""The snippets and commands of the documentation, run as they stand."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spacy_elmo.cli import app

from ..threads import one_thread  # noqa: F401

ROOT = Path(__file__).parents[2]
PREFIX = "python -m spacy elmo "


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and content of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def test_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page; names live on from one snippet to the next."""
    pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "tests" / "fixtures" / "golden_tiny", "english")
    shutil.make_archive("german", "zip", "english")
    Path("german.txt").write_text("Ein Satz. Noch einer! " * 15, encoding="utf-8")
    names: dict[str, Any] = {}
    found = blocks((ROOT / "docs" / "migration.md").read_text(encoding="utf-8"))
    assert {language for language, _ in found} == {"python", "bash"}
    for language, content in found:
        if language == "python":
            exec(content, names)
            continue
        for command in content.splitlines():
            assert command.startswith(PREFIX)
            result = CliRunner().invoke(app, shlex.split(command.removeprefix(PREFIX)))
            assert result.exit_code == 0, f"{command}\n{result.output}"
    assert names["doc"].tensor.shape == (len(names["doc"]), 16)
    assert all(vector.shape == (3 * 16,) for vector in names["embeddings"])
    assert Path("german/weights.safetensors").exists()
    assert Path("exported/model.hdf5").exists() and Path("layers.npz").exists()
    assert list(Path("packages").iterdir())


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if target.startswith("http"):
                continue
            path, _, anchor = target.partition("#")
            assert not path or (page.parent / path).exists(), f"{page.name}: {target}"
            assert path or anchor in anchors, f"{page.name}: {target}"
