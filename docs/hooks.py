"""MkDocs hooks: pages of the repository outside ``docs/``, and the notebook, become pages too.

In the site, ``docs/X`` is ``X``, the README is the home page, and every other file has the path
that it has in the repository. Links between them are rewritten so; files that are no pages, such
as configs, are copied.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md", "README.ko.md", "ARCHITECTURE.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md",
    "project/README.md", "project/COMMANDS.md", "project/configs/README.md",
    "project/six_tasks/README.md",
    "project/weights/en_md/README.md", "project/weights/ko_sm/README.md",
    "spacy_elmo/models/en_sm/README.md",
)  # fmt: skip
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/, and the files that any page links to."""
    add = files.append
    for path in PAGES:
        add(File.generated(config, in_site(path), content=(ROOT / path).read_text("utf-8")))
    add(File.generated(config, "tour.md", content=notebook(ROOT / "docs" / "tour.ipynb")))
    pages = [ROOT / path for path in PAGES] + sorted((ROOT / "docs").glob("*.md"))
    for page in pages:
        for _, target, _ in LINK.findall(page.read_text("utf-8")):
            path = in_repository(page.relative_to(ROOT).as_posix(), target)
            linked = ROOT / path
            if linked.is_file() and files.get_file_from_path(in_site(path)) is None:
                add(File.generated(config, in_site(path), abs_src_path=str(linked)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links as they are in the repository to links in the site."""
    place = page.file.src_uri
    source = "README.md" if place == "index.md" else place
    source = source if source in PAGES else f"docs/{source}"

    def rewrite(match: re.Match[str]) -> str:
        if ":" in match[2]:
            return match[0]
        target = in_site(in_repository(source, match[2]))
        return match[1] + posixpath.relpath(target, posixpath.dirname(place) or ".") + match[3]

    return LINK.sub(rewrite, markdown)


def in_repository(page: str, target: str) -> str:
    """Where a link of a page leads, as a path from the root of the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def in_site(path: str) -> str:
    """The path of a file of the repository in the site."""
    names = {"README.md": "index.md", "docs/tour.ipynb": "tour.md"}
    return names.get(path, path.removeprefix("docs/"))


def notebook(path: Path) -> str:
    """The cells of a notebook with their outputs, as Markdown."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(shown(output.get("data", {"text/plain": output.get("text", "")})))
    return "\n\n".join(parts) + "\n"


def shown(data: dict[str, Any]) -> str:
    """An output of a cell: its HTML, or its text."""
    kind = "text/html" if "text/html" in data else "text/plain"
    text = "".join(data[kind])
    if kind == "text/plain":
        return f"```text\n{text.rstrip()}\n```"
    return f"<div>{' '.join(text.split())}</div>"
