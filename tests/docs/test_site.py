"""The documentation as a site: it builds without a warning, such as of a link to nowhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_page_is_there(tmp_path: Path) -> None:
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr
    pages = [path.stem for path in (ROOT / "docs").glob("*.md")]
    assert [name for name in pages if not (site / f"{name}.html").exists()] == []
    loaded = re.compile(r'<(?:img|script)[^>]* src="https?:|<link[^>]*stylesheet[^>]*"https?:')
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text(encoding="utf-8")), page  # from elsewhere
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "Contextual word vectors for spaCy pipelines" in home
    tour = (site / "tour.html").read_text(encoding="utf-8")
    assert tour.count("<svg") - home.count("<svg") >= 2  # pictures of the notebook
