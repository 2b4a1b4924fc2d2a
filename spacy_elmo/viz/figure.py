"""Figures of matplotlib in one style, and their files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

from ..util.files import atomic_file, write_text
from ..util.optional_imports import import_extra
from .html import PAPER, clean, html_page, replace_controls

SUFFIXES = (".html", ".svg", ".png", ".pdf", ".jpg")
WIDTH = 5.6  # inches: labels can be read on a phone
# Okabe and Ito's colours for the colour-blind, in an order whose neighbours differ in lightness.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#1a1a1a", "#f0e442")
MARKERS = "os^DPv*X"
# With the characters of Korean, Chinese and Japanese, on Linux, macOS and Windows.
FONTS = (
    "DejaVu Sans", "Noto Sans CJK KR", "Noto Sans CJK JP", "NanumGothic", "Apple SD Gothic Neo",
    "Hiragino Sans", "Malgun Gothic", "Microsoft YaHei", "Noto Sans",
)  # fmt: skip
STYLE = {
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.12,
    "figure.facecolor": PAPER,
    "figure.titlesize": 14,
    "figure.titleweight": "bold",
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": f"cycler(color={COLOURS}, marker={list(MARKERS)})",
    "grid.color": "#e4e4e4",
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text as text, in the fonts of the reader
    "svg.hashsalt": "spacy-elmo",  # the same file each time
    "text.parse_math": False,  # $ is a dollar
}


@contextmanager
def in_style() -> Iterator[None]:
    """A context, or a decorator, in which figures are drawn and saved in the style of this package,
    whatever style the user has set.

    Raises:
        ValueError: matplotlib is missing.
    """
    import_extra("matplotlib", "viz", "pictures are drawn by matplotlib", "spacy_elmo.viz")
    from matplotlib.font_manager import fontManager
    from matplotlib.style import context

    installed = set(fontManager.get_font_names())
    fonts = {"font.family": [font for font in FONTS if font in installed]}
    with context(["default", STYLE, fonts]):
        yield


def new_figure(title: str, height: float, **settings: Any) -> tuple[Any, Any]:
    """A figure and its axes.

    Args:
        title: above them.
        height: in inches; the width is `WIDTH`.
        settings: of ``Figure.subplots``, such as the number of rows.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    figure.suptitle(replace_controls(title))
    return figure, figure.subplots(**settings)


def save_figure(
    figure: Any, output: str | Path | None, tips: Mapping[str, str] | None = None, below: str = ""
) -> Any:
    """Write a figure, if there is an output, and let a notebook show it.

    Args:
        figure: from `new_figure`.
        output: a file, whose suffix decides the format; see `check_output` for the errors.
        tips: what is shown while the pointer is over a link of the figure, by the link's target.
        below: HTML that follows the figure.

    Returns:
        The figure.

    Warns:
        UserWarning: an image has boxes for characters that no installed font has.
    """
    tips = tips or {}
    figure._repr_html_ = partial(to_html, figure, tips, below)
    check_output(output)
    if output is not None:
        file, suffix = Path(output), Path(output).suffix.lower()
        if suffix == ".html":
            write_text(file, html_page(figure.get_suptitle(), to_html(figure, tips, below)))
        elif suffix == ".svg":
            write_text(file, to_svg(figure, tips))
        else:
            with in_style(), atomic_file(file) as temporary:
                figure.savefig(temporary, format=suffix[1:])
    return figure


def check_output(file: str | Path | None) -> None:
    """Check the path of a picture to write, if there is one, before the work begins.

    Raises:
        ValueError: the suffix is none of `SUFFIXES`, or the folder is missing.
    """
    if file is None:
        return
    file = Path(file)
    if file.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"'{file}' has no suffix of a picture; known are {known}.")
    if not file.parent.is_dir():
        raise ValueError(f"There is no directory '{file.parent}' to write '{file.name}' to.")


@in_style()
def to_svg(figure: Any, tips: Mapping[str, str]) -> str:
    """A figure as SVG, as wide as its page allows; see `save_figure`."""
    buffer = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # browsers have fonts
        figure.savefig(buffer, format="svg", metadata=nothing)
    style = 'role="img" style="max-width:100%;height:auto"'
    title = f"<title>{clean(figure.get_suptitle())}</title>"
    svg = buffer.getvalue().replace('version="1.1">', f'version="1.1" {style}>{title}', 1)
    for target, text in tips.items():
        link = f'<a xlink:href="{target}">'
        svg = svg.replace(link, f"{link}<title>{clean(text)}</title>")
    return svg


def to_html(figure: Any, tips: Mapping[str, str], below: str) -> str:
    """A figure as an element of a page; see `save_figure`."""
    svg = to_svg(figure, tips)
    return svg[svg.index("<svg") :] + below


def columns(text: str) -> int:
    """The width of a text in Latin characters; those of Korean, Chinese and Japanese have two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def cut(text: str, most: int) -> str:
    """A text for a label, as wide as so many Latin characters at most."""
    text = replace_controls(text)[: most + 1]
    while columns(text) > most:
        text = text.rstrip("…")[:-1] + "…"
    return text


def cut_start(text: str, most: int) -> str:
    """As `cut`, but it is the end that stays."""
    return cut(text[::-1], most)[::-1]
