"""The documentation as a site: it builds without a warning, and its links lead somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]


class Links(HTMLParser):
    """What a page links to, what it loads, and the anchors that it has."""

    def __init__(self, page: Path):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("img", "script") and "src" in found:
            self.loaded.append(found["src"])
        elif tag == "link" and found.get("rel") == "stylesheet":
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", out]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr
    return out


def test_every_page_is_there(site: Path) -> None:
    pages = [path.stem for path in (ROOT / "docs").glob("*.md")]
    assert [name for name in pages if not (site / f"{name}.html").exists()] == []
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "Contextual word vectors for spaCy pipelines" in home
    tour = (site / "tour.html").read_text(encoding="utf-8")
    assert tour.count("<svg") - home.count("<svg") >= 3  # pictures of the notebook


def test_links(site: Path) -> None:
    """Of pages, pictures and files, with anchors; and nothing is loaded from elsewhere."""
    pages = {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 25
    n_links = 0
    for page, found in pages.items():
        assert not [url for url in found.loaded if urlsplit(url).scheme], page
        for url in (*found.links, *found.loaded):
            parts = urlsplit(url)
            if parts.scheme or url in (".", ""):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page.name}: {url}"
            if parts.fragment and target in pages:
                anchor = unquote(parts.fragment)
                assert anchor in pages[target].anchors, f"{page.name}: {url}"
            n_links += 1
    assert n_links > 1000
