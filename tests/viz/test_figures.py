"""Figures and their files, and the commands that draw them."""

from __future__ import annotations

import json
import math
import pickle
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy

from spacy_elmo import viz
from spacy_elmo.senses.occurrences import Context, Senses, group_contexts
from spacy_elmo.viz.figure import cut, in_style, new_figure, save_figure

from ..cli.helpers import fail, joined, succeed
from ..pipeline.helpers import write_language_model, write_weights
from ..pipeline.learning import listening, make_pipeline, start

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

SVG = "{http://www.w3.org/2000/svg}"


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


def test_plot_mix(tmp_path: Path) -> None:
    """Of a tagger that has learned its own mix; the elmo component's own, which nothing has
    trained, is left out, and the command says so."""
    nlp = make_pipeline(write_weights(tmp_path / "weights"), listening())
    out = tmp_path / "mix.svg"
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


def test_surprisal(tmp_path: Path) -> None:
    """Each word has its bits beside it; one outside the vocabulary has none."""
    weights = write_language_model(tmp_path / "weights", ["The", "bank", "money", "."])
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


# Curves of pretraining


def losses(steps: range, level: float) -> list[dict[str, Any]]:
    return [{"step": step, "words": 400 * step, "loss": level + step, "lr": 0.1} for step in steps]


def write_run(path: Path, entries: Sequence[dict[str, Any]], end: str = "") -> Path:
    path.mkdir(parents=True)
    text = "".join(json.dumps(entry) + "\n" for entry in entries) + end
    (path / "log.jsonl").write_text(text, encoding="utf-8")
    return path


def drawn(runs: Path | Sequence[Path]) -> list[dict[str, list[list[float]]]]:
    """The points of the lines of each panel, by the names in the legend."""
    return [{line.get_label(): line.get_xydata().tolist() for line in panel.lines}
            for panel in viz.draw_training(runs).axes]  # fmt: skip


def test_what_cannot_be_drawn_is_left_out(tmp_path: Path) -> None:
    entries = losses(range(1, 4), 0.0)
    entries.insert(1, {"step": 1, "words": 400, "mean": 3.0, "loss": None})
    entries.append({"step": 8, "words": 3200, "loss": math.nan})
    entries.append({"step": 9, "words": 3600, "loss": math.inf, "mean": 1e300})
    [[loss], [perplexity], _] = map(dict.values, drawn(write_run(tmp_path / "run", entries)))
    assert [value for _, value in loss] == [1.0, 2.0, 3.0] and perplexity == [[400, 3.0]]


@pytest.mark.parametrize("means", [[], [250.0, 131.0, 140.0]])
def test_a_run(means: list[float], tmp_path: Path) -> None:
    steps = (100, 200, 300)
    entries = [
        {"words": 400 * step, "mean": mean} for step, mean in zip(steps, means, strict=False)
    ]
    entries += [*losses(range(100, 400, 100), 3.0), {"model": "model-best", "mean": 1.0}]
    entries = [{"step": 1, **entry} for entry in entries]
    run = write_run(tmp_path / "run", entries, end='{"step": 2, "lo')  # it is under way
    page = viz.draw_training(str(run))._repr_html_()
    for label in ("training loss (nats)", "held-out perplexity", "learning rate"):
        assert page.count(f">{label}</text>") == 1
    [[(name, loss)], [(_, perplexity)], [(_, rate)]] = map(dict.items, drawn(run))
    assert loss == [[400 * step, 3.0 + step] for step in steps]
    assert [each for _, each in rate] == [0.1] * 3
    # All evaluations but that of the finished model.
    assert perplexity == [[400 * step, mean] for step, mean in zip(steps, means, strict=False)]
    assert name.startswith(f"best {min(means, default=math.nan):,.1f}: ") and name.endswith("/run")


def test_runs_are_compared(tmp_path: Path) -> None:
    """By the ends of their paths; those of equal names, and logs themselves, too."""
    entries = losses(range(1, 40), 5.0)
    ends = ("/small", "/_large", "/b/small/log.jsonl")
    for i, end in enumerate(ends):
        write_run(tmp_path / end[1:].removesuffix("/log.jsonl"), entries[i:])
    loss, *_ = drawn([tmp_path / end[1:] for end in ends])
    assert [len(points) for points in loss.values()] == [39, 38, 37]
    assert all(name.endswith(end) for name, end in zip(loss, ends, strict=True))


def test_plot_training(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", losses(range(1, 4), 0.0))
    empty = write_run(tmp_path / "empty", [])
    said = succeed("plot-training", run, run, "-o", tmp_path / "two.svg")
    assert "Drew the training" in said
    assert '"output"' in succeed("plot-training", run, "--json", "-o", tmp_path / "one.PNG")
    assert "no losses in a log" in fail("plot-training", empty)
    assert "held-out perplexity" in (tmp_path / "two.svg").read_text(encoding="utf-8")
    assert (tmp_path / "one.PNG").read_bytes().startswith(b"\x89PNG")
