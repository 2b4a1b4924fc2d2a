"""Figures and their files."""

from __future__ import annotations

import json
import pickle
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy

from spacy_elmo import viz
from spacy_elmo.senses.occurrences import Context, Senses, group_contexts
from spacy_elmo.viz.figure import cut, in_style, new_figure, save_figure

from ..cli.helpers import fail, joined, succeed
from ..pipeline.helpers import write_language_model
from ..pipeline.learning import listening, make_pipeline, start

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny"
    return write_language_model(path, ["the", "The", "bank", "money", "."])


@in_style()
def labelled(*texts: str, output: Path | None = None) -> Any:
    figure, axes = new_figure("Labels & <more>", 2.0)
    for number, text in enumerate(texts):
        axes.text(0.1, number / len(texts), text)
    return save_figure(figure, output)


def labels(page: str) -> list[str | None]:
    return [text.text for text in ET.fromstring(page).iter(f"{SVG}text")]


# Files


def test_formats(tmp_path: Path) -> None:
    """Labels are text in SVG, in any script, and boxes in images where there is no font; it is the
    same file each time, which refers to no other."""
    texts = ["Money: $5 & <b>$6</b>", r"\alpha $x_1$", "눈이 내렸다", "𒀀"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for suffix, start in [(".PNG", b"\x89PNG"), (".pdf", b"%PDF"), (".jpg", b"\xff\xd8\xff")]:
            labelled(*texts, output=tmp_path / f"picture{suffix}")
            assert (tmp_path / f"picture{suffix}").read_bytes().startswith(start)
        files = [tmp_path / name for name in ("one.svg", "two.svg")]
        pages = [labelled(*texts, output=file) and file.read_text("utf-8") for file in files]
    assert pages[0] == pages[1]
    assert [label for label in labels(pages[0]) if label in texts] == texts
    assert ET.fromstring(pages[0]).findtext(f".//{SVG}title") == "Labels & <more>"
    root = ET.fromstring(pages[0]).attrib  # a size in pixels, which each renderer knows
    assert (root["width"], root["height"], "style" in root) == ("538", "192", False)
    assert labelled("a")._repr_html_().startswith('<svg style="max-width:100%;')
    outside = re.sub(r'xmlns:?\w*="[^"]*"', "", pages[0])  # names alone
    assert not any(part in outside for part in ("http:", "https:", "src="))


def test_styles_of_users_and_of_this_package_do_not_meet() -> None:
    """On white paper, the white text of a dark style could not be read."""
    before = dict(matplotlib.rcParams)
    plain = labelled("a")._repr_html_()
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"text.color": "white", "text.usetex": True}):
        assert labelled("a")._repr_html_() == plain


def test_labels_are_shortened_to_their_width() -> None:
    assert [cut("crane", most) for most in (5, 4, 1)] == ["crane", "cra…", "…"]
    assert [cut("두루미", most) for most in (6, 5, 4)] == ["두루미", "두루…", "두…"]


def test_a_notebook_shows_figures() -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    format_ = interactive.InteractiveShell.instance().display_formatter.format
    assert "<svg" in format_(pickle.loads(pickle.dumps(labelled("a"))))[0]["text/html"]


# Figures


def test_plot_mix(weights: Path, tmp_path: Path) -> None:
    """Of a tagger that has learned its own mix; the elmo component's own, which nothing has
    trained, is left out, and the command says so."""
    nlp, out = make_pipeline(weights, listening()), tmp_path / "mix.svg"
    examples, optimizer = start(nlp)
    nlp("Hello.")  # which gives doc.tensor its mix
    nlp.to_disk(tmp_path / "untrained")
    nlp.update(examples, sgd=optimizer)
    nlp.to_disk(tmp_path / "nlp")
    command = ["plot-mix", tmp_path / "nlp", "-o", out]
    data = json.loads(succeed(*command, "--json"))["mixes"]
    assert {(m["component"], m["listener"]): m["is_trained"] for m in data} == {
        ("elmo", "doc.tensor"): False, ("tagger", "tok2vec"): True,
    }  # fmt: skip
    found = labels(out.read_text(encoding="utf-8"))
    assert "Mixes of “nlp”" in found and "tagger" in found and "elmo" not in found
    assert "nothing has trained it: the mix of elmo" in joined(succeed(*command))
    assert "no trained mix" in fail("plot-mix", tmp_path / "untrained", "-o", out)


def test_senses() -> None:
    """Groups have their points and keywords, and points their words where there is room."""

    def draw(texts: list[tuple[str, str, str]], vectors: np.ndarray) -> Any:
        contexts = [Context(t, v) for t, v in zip(texts, vectors, strict=True)]
        groups, _ = group_contexts(contexts, spacy.blank("en"))
        return viz.draw_senses(Senses("bank", groups, True))

    texts = [("The ", "bank", " lent"), ("", "Bank", " & <b>\x01"), ("A ", "bank", "."),
             ("", "bank", "")]  # fmt: skip
    vectors = np.array([[1, 0.2], [1, 0], [-1, 0.2], [-1, 0]])
    figure = draw(texts, vectors)
    [axes], [legend] = figure.axes, figure.legends
    assert [len(line.get_xdata()) for line in axes.lines] == [2, 2]
    assert legend.get_texts()[0].get_text() == "1 · 2 contexts · lent"
    beside = {text.get_text() for text in axes.texts}
    assert beside == {"The bank lent", "Bank & <b>\ufffd", "A bank.", "bank"}
    assert beside <= set(labels(figure._repr_html_()))
    axes = draw([("", f"word{i}", "") for i in range(4)], vectors[[0, 0, 0, 2]]).axes[0]
    assert {text.get_text() for text in axes.texts} == {"word0", "word3"}


def test_surprisal(weights: Path) -> None:
    """Each word has its bits beside it; one outside the vocabulary has none."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_surprisal", config={"weights": str(weights)})
    docs = [nlp("The bank."), nlp("money & <b> bank")[1:]]
    shown = viz.draw_surprisal(docs)
    assert shown and "&amp; &lt;b&gt; " in shown and "money" not in shown
    found = re.findall(r"rgba\(0, 114, 178, (.*?)\)[^>]*>\s+(.*)\s+<span.*>(.*)</span>", shown)
    bits = [(t.text, t._.surprisal) for doc in docs for t in doc if t._.surprisal is not None]
    assert [(word, label) for _, word, label in found] == [(word, f"{b:.1f}") for word, b in bits]
    shades = [float(shade) for shade, _, _ in found]
    assert np.argsort(shades).tolist() == np.argsort([b for _, b in bits]).tolist()
    with pytest.raises(ValueError, match="elmo_surprisal"):
        viz.draw_surprisal(nlp.make_doc("The bank."))
