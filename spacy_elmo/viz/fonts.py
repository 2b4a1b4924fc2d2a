"""Fonts with the characters of a picture, among those that matplotlib finds."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable
from typing import Any

DEFAULT = "DejaVu Sans"  # comes with matplotlib
EAST_ASIAN = ("HANGUL", "CJK", "HIRAGANA", "KATAKANA")  # beginnings of names of characters


def choose_fonts(texts: Iterable[str], file: str) -> list[str]:
    """Families of fonts that together have the characters of texts, the preferred one first.

    Warns:
        UserWarning: no installed font has some of them; the warning names one to install.

    Args:
        texts: of all labels.
        file: of the picture, for the warning.
    """
    from matplotlib.font_manager import fontManager

    missing = {ord(c) for text in texts for c in text if not c.isspace()}
    families = [DEFAULT]
    missing -= characters(DEFAULT)
    if missing:
        add_new_fonts()
        names = sorted({font.name for font in fontManager.ttflist}, key=preference)
        have = {name: characters(name) for name in names if is_real(name)}
        while best := max(have, key=lambda name: len(have[name] & missing), default=None):
            if not have[best] & missing:
                break
            families.append(best)
            missing -= have[best]
    if missing:
        warn(sorted(map(chr, missing)), file)
    return families


def characters(family: str) -> set[int]:
    """The code points that the regular font of a family can draw; none if it has no outlines."""
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    fonts = [font for font in fontManager.ttflist if font.name == family]
    regular = min(fonts, key=lambda font: (font.style != "normal", font.weight != 400))
    try:
        font = FT2Font(regular.fname)
    except (OSError, RuntimeError):  # removed since matplotlib listed it, or damaged
        return set()
    return set(font.get_charmap()) if font.scalable else set()


def preference(family: str) -> tuple[Any, ...]:
    """Sorts families: like the default first, then by name."""
    plain = any(word in family for word in ("Sans", "Gothic", "Hei"))
    return (not plain or "Mono" in family, family)


def is_real(family: str) -> bool:
    """Fonts of last resort have a box for every character."""
    return "lastresort" not in family.lower().replace(" ", "")


def add_new_fonts() -> None:
    """Fonts that were installed after matplotlib had made its list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {font.fname for font in fontManager.ttflist}
    for path in set(findSystemFonts()) - known:
        try:
            fontManager.addfont(path)
        except (OSError, RuntimeError, NotImplementedError):
            continue  # a format that matplotlib cannot read


def warn(missing: list[str], file: str) -> None:
    """Name the characters, and a font that has them."""
    east_asian = any(unicodedata.name(c, "").startswith(EAST_ASIAN) for c in missing)
    font = "Noto Sans CJK (Debian: fonts-noto-cjk)" if east_asian else "one of the Noto fonts"
    shown = "".join(missing[:10]) + ("…" if len(missing) > 10 else "")
    warnings.warn(
        f"{file}: no installed font has the characters '{shown}', and boxes are drawn for them. "
        f"Install a font that has them, such as {font}, or write an .html or .svg file.",
        UserWarning,
        stacklevel=5,
    )
