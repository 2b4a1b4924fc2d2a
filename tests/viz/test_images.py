"""Figures as files: whole, and with the characters of their labels."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.viz.figure import in_style, new_figure
from spacy_elmo.viz.picture import Picture

matplotlib = pytest.importorskip("matplotlib")

SVG = "{http://www.w3.org/2000/svg}"
BEGINNINGS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".jpg": b"\xff\xd8\xff"}


@in_style()
def labelled(*texts: str) -> Picture:
    figure, axes = new_figure(1.0)
    for number, text in enumerate(texts):
        axes.text(0.1, number / len(texts), text)
    return Picture("Labels & <more>", "Labels.", figure)


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_formats(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"picture{suffix.upper()}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labelled("Money: $5 & $6", r"\alpha $x_1$").save(file)
    assert file.read_bytes().startswith(BEGINNINGS[suffix])


def test_labels_of_svg_are_text(tmp_path: Path) -> None:
    """In any script, whether or not this machine has its fonts; the same file each time."""
    texts = ["Money: $5 & <b>$6</b>", "눈이 내렸다", "𒀀"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labelled(*texts).save(tmp_path / "one.svg")
        labelled(*texts).save(tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    labels = [text.text for text in ET.parse(tmp_path / "one.svg").iter(f"{SVG}text")]
    assert [label for label in labels if label in texts] == texts
    assert ET.parse(tmp_path / "one.svg").findtext("{*}title") == "Labels & <more>"


def test_an_image_without_a_font(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="missing from"):
        labelled("𒀀").save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").is_file()


def test_the_style_of_others_stays() -> None:
    before = dict(matplotlib.rcParams)
    labelled("a").html()
    assert dict(matplotlib.rcParams) == before


def test_the_style_of_others_changes_no_picture() -> None:
    """On white paper, the white text of a dark style could not be read."""
    plain = labelled("a").html()
    with matplotlib.rc_context({"text.color": "white", "text.usetex": True}):
        assert labelled("a").html() == plain


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


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"drawn by matplotlib.*spacy-elmo\[viz\]"):
        labelled("a")
