"""Drawings as images: whole files, and fonts that have the characters of the labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.viz.drawing import Drawing
from spacy_elmo.viz.fonts import choose_fonts
from spacy_elmo.viz.picture import Picture

fonts = pytest.importorskip("matplotlib.font_manager")

BEGINNINGS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".jpg": b"\xff\xd8\xff"}
ARC = "\u2312"  # in DejaVu Sans Mono, and not in DejaVu Sans
SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"


def labelled(*texts: str) -> Picture:
    drawing = Drawing(200, 30 * len(texts))
    for number, text in enumerate(texts):
        drawing.label(10, 30 * number + 20, text, bold=number % 2 == 1)
    return Picture("Labels", "Labels.", drawing)


def install(monkeypatch: pytest.MonkeyPatch, listed: Sequence[Any], new: Sequence[Any]) -> None:
    """Only some fonts are in matplotlib's list, and others were installed after it was made."""
    monkeypatch.setattr(fonts.fontManager, "ttflist", [*listed])
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: [font.fname for font in new])


def shipped(*families: str) -> list[Any]:
    """Fonts that matplotlib ships."""
    return [font for font in fonts.fontManager.ttflist
            if font.name in families and "mpl-data" in font.fname]  # fmt: skip


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_formats(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"picture{suffix.upper()}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labelled("Money: $5 & $6", r"\alpha $x_1$").save(file)
    assert file.read_bytes().startswith(BEGINNINGS[suffix])


def test_a_font_that_has_the_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sans, mono = shipped(SANS), shipped(MONO)
    install(monkeypatch, sans, [])
    with pytest.warns(UserWarning, match=ARC):
        labelled(ARC, ARC).save(tmp_path / "boxes.png")
    install(monkeypatch, [*mono, *sans], [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labelled(ARC, ARC).save(tmp_path / "arcs.png")
        assert choose_fonts(["The arc", ARC], "") == [SANS, MONO]
        assert choose_fonts(["The arc"], "") == [SANS]
    assert (tmp_path / "arcs.png").read_bytes() != (tmp_path / "boxes.png").read_bytes()


def test_a_font_installed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, shipped(SANS), shipped(MONO))
    assert choose_fonts([ARC], "") == [SANS, MONO]


def test_fonts_without_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of last resort has boxes only; others are damaged or gone."""
    damaged = tmp_path / "damaged.ttf"
    damaged.write_bytes(b"\x00\x01\x00\x00 no font")
    [mono, *_] = shipped(MONO)
    unfit = [
        fonts.FontEntry(fname=mono.fname, name="Last Resort"),
        fonts.FontEntry(fname=str(damaged), name="Damaged"),
        fonts.FontEntry(fname=str(tmp_path / "gone.ttf"), name="Gone"),
    ]
    install(monkeypatch, [*unfit, *shipped(SANS)], [fonts.FontEntry(fname=str(damaged))])
    with pytest.warns(UserWarning, match=ARC):
        assert choose_fonts([ARC], "") == [SANS]


@pytest.mark.parametrize(
    "text, font",
    [("눈이 내렸다", "Noto Sans CJK"), ("雪", "Noto Sans CJK"), ("𒀀", "the Noto fonts")],
)
def test_no_font(text: str, font: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning names the characters and a font, and the image is drawn with boxes."""
    install(monkeypatch, shipped(SANS), [])
    with pytest.warns() as found:
        labelled(text, text, "Latin").save(tmp_path / "picture.png")
    [warning] = found
    message = str(warning.message)
    assert font in message and str(tmp_path / "picture.png") in message
    assert set(message) >= set(text) and warning.filename == __file__
    assert (tmp_path / "picture.png").is_file()


def test_an_image_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    labelled("old").save(tmp_path / "picture.png")
    before = (tmp_path / "picture.png").read_bytes()

    def fail(self: Any, path: Path, **settings: Any) -> None:
        path.write_bytes(b"half of it")
        raise OSError("No space left on device")

    monkeypatch.setattr(figure.Figure, "savefig", fail)
    with pytest.raises(OSError, match="No space"):
        labelled("new").save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
