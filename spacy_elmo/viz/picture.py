"""A picture with its title and caption: HTML, SVG and images, or shown in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..bilm.files import write_text
from .drawing import FONT, INK, PAPER, Drawing, clean
from .image import KINDS, save_image

SUFFIXES = (".html", ".svg", *KINDS)
STYLE = f"""
.elmo-viz {{ font-family: {FONT}; color: {INK}; background: {PAPER}; color-scheme: light;
  max-width: 60rem; margin: 0 auto; padding: 1rem; line-height: 1.5; overflow-wrap: anywhere; }}
.elmo-viz h1 {{ font-size: 1.4rem; margin: 0 0 .5rem; }}
.elmo-viz h2 {{ font-size: 1.1rem; margin: 1.5rem 0 .5rem; }}
.elmo-viz li:target {{ background: #fff3c4; }}
.elmo-viz a:focus polygon, .elmo-viz a:hover polygon {{ stroke: {INK}; stroke-width: 2.5; }}
"""


@dataclass(frozen=True)
class Picture:
    """A drawing, or text in HTML, with a title and a caption.

    Args:
        title: a heading.
        caption: what is to be seen, in a sentence or two.
        drawing: None if there is only text.
        text: HTML below the drawing.
    """

    title: str
    caption: str
    drawing: Drawing | None = None
    text: str = ""

    def html(self, page: bool = False) -> str:
        """The picture as HTML that refers to nothing outside itself.

        Args:
            page: a whole page, not a single element.
        """
        svg = [self.drawing.svg(self.title)] if self.drawing else []
        lines = [
            '<div class="elmo-viz">', f"<style>{STYLE}</style>", f"<h1>{clean(self.title)}</h1>",
            f"<p>{clean(self.caption)}</p>", *svg, self.text, "</div>",
        ]  # fmt: skip
        element = "\n".join(filter(None, lines))
        return html_page(self.title, [element]) if page else element

    def _repr_html_(self) -> str:
        return self.html()

    def show(self, page: bool = False, jupyter: bool | None = None) -> str | None:
        """Show the picture in a notebook, or return its HTML.

        Args:
            page: see `html`.
            jupyter: show it and return None; by default, where the code runs in a notebook.
        """
        from spacy.util import is_in_jupyter

        if not (is_in_jupyter() if jupyter is None else jupyter):
            return self.html(page)
        from IPython.display import HTML, display

        display(HTML(self.html()))
        return None

    def save(self, file: str | Path) -> None:
        """Write a file, whole or not at all; its suffix decides the format.

        Raises:
            ValueError: the suffix is none of `SUFFIXES`, the folder is missing, there is no
                drawing for an image, or an image needs matplotlib.
        """
        file = check_output(file)
        kind = file.suffix.lower()
        if kind == ".html":
            content = self.html(page=True)
        elif self.drawing is None:
            raise ValueError(f"'{file}': '{self.title}' is text and has no image; write .html.")
        elif kind in KINDS:
            save_image(self.drawing, file)
            return
        else:
            content = self.drawing.svg(self.title) + "\n"
        write_text(file, content)


def html_page(title: str, elements: Iterable[str]) -> str:
    """A page of several pictures, in HTML that refers to nothing outside itself."""
    body = "\n".join(elements)
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{clean(title)}</title>\n</head>\n"
        f'<body style="margin:0">\n{body}\n</body>\n</html>\n'
    )


def check_output(file: str | Path) -> Path:
    """The path of a picture to write, before the work begins.

    Raises:
        ValueError: see `Picture.save`.
    """
    file = Path(file)
    if file.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"'{file}' has no suffix of a picture; known are {known}.")
    if not file.parent.is_dir():
        raise ValueError(f"There is no directory '{file.parent}' to write '{file.name}' to.")
    return file
