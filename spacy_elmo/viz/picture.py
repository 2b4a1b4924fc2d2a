"""A picture with its title and caption: HTML, SVG and images, or shown in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..util.files import write_text
from .figure import save_image, to_svg
from .page import STYLE, clean, html_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".html", ".svg", ".png", ".pdf", ".jpg")


@dataclass(frozen=True)
class Picture:
    """A figure, or text in HTML, with a title and a caption.

    Args:
        title: a heading.
        caption: what is to be seen, in a sentence or two.
        figure: of matplotlib; None if there is only text.
        text: HTML below the figure.
        titles: what is shown while the pointer is over a link of the figure, by its target.
    """

    title: str
    caption: str
    figure: Figure | None = None
    text: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)

    def html(self, page: bool = False) -> str:
        """The picture as HTML that refers to nothing outside itself.

        Args:
            page: a whole page, not a single element.
        """
        svg = "" if self.figure is None else to_svg(self.figure, self.title, self.titles)
        lines = [
            '<div class="elmo-viz">', f"<style>{STYLE}</style>", f"<h1>{clean(self.title)}</h1>",
            f"<p>{clean(self.caption)}</p>", svg, self.text, "</div>",
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
        from IPython.display import display

        display(self)
        return None

    def save(self, file: str | Path) -> None:
        """Write a file, whole or not at all; its suffix decides the format.

        Raises:
            ValueError: the suffix is none of `SUFFIXES`, the folder is missing, or there is no
                figure for an image.

        Warns:
            UserWarning: an image has boxes for characters that no installed font has.
        """
        file = check_output(file)
        if file.suffix.lower() == ".html":
            write_text(file, self.html(page=True))
        elif self.figure is None:
            raise ValueError(f"'{file}': '{self.title}' is text and has no image; write .html.")
        elif file.suffix.lower() == ".svg":
            write_text(file, to_svg(self.figure, self.title, self.titles) + "\n")
        else:
            save_image(self.figure, file)


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
