"""The style of all figures, and their files."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import StringIO
from itertools import accumulate
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

from ..util.files import atomic_file
from ..util.optional_imports import import_extra

SUFFIXES = (".svg", ".png", ".pdf", ".jpg")
PIXELS = 96  # per inch, in a browser
WIDTH = 5.6  # inches: labels can be read on a phone
INK, FAINT, PAPER = "#1a1a1a", "#767676", "#ffffff"
# Okabe and Ito's colours for the colour-blind, in an order whose neighbours differ in lightness.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", INK, "#f0e442")
MARKERS = "os^DPv*X"
# With the characters of Korean, Chinese and Japanese, on Linux, macOS and Windows.
FONTS = (
    "DejaVu Sans", "Noto Sans CJK KR", "Noto Sans CJK JP", "NanumGothic", "Apple SD Gothic Neo",
    "Hiragino Sans", "Malgun Gothic", "Microsoft YaHei", "Noto Sans",
)  # fmt: skip
STYLE = {
    "figure.constrained_layout.use": True, "figure.constrained_layout.h_pad": 0.12,
    "figure.titlesize": 14, "figure.titleweight": "bold", "font.size": 12,
    "axes.titlesize": 12, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.prop_cycle": f"cycler(color={COLOURS}, marker={list(MARKERS)})",
    "grid.color": "#e4e4e4",
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text as text, in the fonts of the reader
    "svg.hashsalt": "spacy-elmo",  # the same file each time
    "text.parse_math": False,  # $ is a dollar
}  # fmt: skip
SIZE = re.compile(r'width="[\d.]+pt" height="[\d.]+pt" ')
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@contextmanager
def in_style() -> Iterator[None]:
    """A context or decorator that draws and saves figures in the style of this package, whatever
    style the user has set.

    A character that no installed font has is a box in an image. In SVG, it is text for the fonts of
    the reader.

    Raises:
        ValueError: matplotlib is missing.
    """
    import_extra("matplotlib", "viz", "pictures are drawn by matplotlib", "spacy_elmo.viz")
    from matplotlib.font_manager import fontManager
    from matplotlib.style import context

    installed = set(fontManager.get_font_names())
    fonts = {"font.family": [font for font in FONTS if font in installed]}
    with context(["default", STYLE, fonts]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # browsers have fonts
        yield


def new_figure(title: str, height: float, **settings: Any) -> tuple[Any, Any]:
    """Make a figure and its axes.

    Args:
        title: the title of the figure.
        height: the height in inches; the width is `WIDTH`.
        settings: arguments for ``Figure.subplots``, such as the number of rows.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    figure.suptitle(NOT_XML.sub("\ufffd", title))
    return figure, figure.subplots(**settings)


def save_figure(figure: Any, output: str | Path | None) -> Any:
    """Write a figure to a file, if one is named, and let a notebook show it.

    Args:
        figure: a figure from `new_figure`.
        output: the file, see `check_output`, or None.

    Returns:
        The figure.
    """
    figure._repr_html_ = partial(to_html, figure)
    check_output(output)
    if output is not None:
        with atomic_file(Path(output)) as file:
            if file.suffix.lower() == ".svg":
                file.write_bytes(to_svg(figure).encode())
            else:
                figure.savefig(file)
    return figure


def check_output(output: str | Path | None) -> None:
    """Check the path of a picture, if one is named, before the work begins.

    Raises:
        ValueError: the suffix is not in `SUFFIXES`, or the folder is missing.
    """
    if output is None:
        return
    file = Path(output)
    if file.suffix.lower() not in SUFFIXES or not file.parent.is_dir():
        raise ValueError(
            f"'{file}' cannot be a picture: its name must end in one of {', '.join(SUFFIXES)}, and "
            f"its directory must exist."
        )


@in_style()
def to_svg(figure: Any) -> str:
    """Turn a figure into SVG. Its size is a plain number of pixels: some renderers know no unit or
    style."""
    buffer = StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata={**metadata, "Title": figure.get_suptitle()})
    width, height = (round(size * PIXELS) for size in figure.get_size_inches())
    content = SIZE.sub(f'width="{width}" height="{height}" ', buffer.getvalue(), count=1)
    return "<svg" + content.partition("<svg")[2]


def to_html(figure: Any) -> str:
    """Turn a figure into an element for a page, which it does not exceed."""
    return '<svg style="max-width:100%;height:auto"' + to_svg(figure).removeprefix("<svg")


def cut(text: str, most: int) -> str:
    """Cut a text for a label: one line of at most this many Latin characters. Korean, Chinese and
    Japanese characters are twice as wide."""
    text = NOT_XML.sub("\ufffd", " ".join(text.split()))
    ends = list(accumulate(1 + (east_asian_width(character) in "WF") for character in text))
    is_whole = bisect_right(ends, most) == len(text)
    return text if is_whole else text[: bisect_right(ends, most - 1)] + "…"
