"""Pictures, and the commands that make them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from spacy_elmo import LanguageModel, viz
from spacy_elmo.cli import app
from spacy_elmo.pipeline.mixes import Mix
from spacy_elmo.senses.clusters import center, divide, project
from spacy_elmo.senses.occurrences import find_senses
from spacy_elmo.viz.figure import cut
from spacy_elmo.viz.mixes import draw_mixes
from spacy_elmo.viz.similarity import draw_matrix
from spacy_elmo.viz.surprisal import colours

from ..pipeline.helpers import make_nlp, write_language_model
from ..threads import one_thread  # noqa: F401

pytest.importorskip("matplotlib")

TEXT = """The bank lent money.
A bank & <b>river</b>\x01 flows. No word here.
Bank! The bank is shut.
"""
SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny"
    return write_language_model(path, ["the", "The", "bank", "money", "."])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_groups_that_are_far_apart() -> None:
    vectors = np.random.default_rng(0).normal(size=(9, 6)) * 0.1
    vectors[[0, 3, 4, 8]] += [5, 0, 0, 0, 0, 0]
    distance = 1 - center(vectors) @ center(vectors).T
    label = divide(distance, 8)
    assert label.tolist() == [1, 0, 0, 1, 1, 0, 0, 0, 1]
    assert len(set(divide(distance, 8, exactly=4).tolist())) == 4
    points, shares = project(vectors)
    assert points.shape == (9, 2) and shares[0] > 0.9
    assert {tuple(point > 0) for point in points[label == 0, :1]} != {
        tuple(point > 0) for point in points[label == 1, :1]
    }


def test_labels_are_shortened_to_their_width() -> None:
    assert [cut("crane", most) for most in (5, 4, 1)] == ["crane", "cra…", "…"]
    assert [cut("두루미", most) for most in (6, 5, 4)] == ["두루미", "두루…", "두…"]


@pytest.mark.parametrize("value", np.linspace(0, 1, 21).tolist())
def test_labels_on_a_shade_have_contrast(value: float) -> None:
    """By the formula of the Web Content Accessibility Guidelines, where 3 is the least."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    red, green, blue, percent, text = re.findall(r"\d+|#\w+", colours(value))
    # The background is laid on white.
    mixed = [255 - (255 - int(part)) * int(percent) / 100 for part in (red, green, blue)]
    shade = "#" + "".join(f"{round(part):02x}" for part in mixed)
    dark, light = sorted(map(luminance, (shade, text)))
    assert (light + 0.05) / (dark + 0.05) > 4


def test_senses(weights: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    result = run("senses", "bank", "--in", corpus, "-o", out, "-w", weights)
    assert result.exit_code == 0, result.output
    tree = ET.fromstring(out.read_text(encoding="utf-8"))
    links = [a.get(HREF) for a in tree.iter(f"{SVG}a")]
    listed = [f"#{li.get('id')}" for li in tree.iter("li")]
    assert sorted(links) == sorted(listed) and len(links) == 4
    titles = {a.findtext(f"{SVG}title") for a in tree.iter(f"{SVG}a")}
    assert titles == {
        "The bank lent money.", "A bank & <b>river</b>\ufffd flows.", "Bank!", "The bank is shut."
    }  # fmt: skip
    for outside in ("http:", "https:", "src="):
        assert outside not in out.read_text(encoding="utf-8").replace('"http://www.w3.org', "")


def test_senses_for_machines(weights: Path, corpus: Path, tmp_path: Path) -> None:
    """What is printed is what `neighbors` prints, beside the picture."""
    out = tmp_path / "out.html"
    arguments = ["bank", "--in", corpus, "-w", weights, "--json"]
    data = json.loads(run("senses", *arguments, "-o", out).stdout)
    assert data.pop("output") == str(out) and out.is_file()
    assert data == json.loads(run("neighbors", *arguments).stdout)


@pytest.mark.parametrize("n_senses", [0, -1])
def test_no_group(weights: Path, corpus: Path, n_senses: int) -> None:
    with pytest.raises(ValueError, match=rf"cannot be divided into {n_senses} groups"):
        find_senses("bank", str(corpus), weights=str(weights), n_senses=n_senses, quiet=True)


def test_neighbors(weights: Path, corpus: Path) -> None:
    command = ["neighbors", "BANK", "--in", corpus, "-w", weights, "--senses", 2]
    data = json.loads(run(*command, "--json").output)
    assert len(data["senses"]) == 2 and data["complete"]
    contexts = [context for sense in data["senses"] for context in sense["contexts"]]
    assert sorted(context["row"] for context in contexts) == [0, 1, 2, 2]
    text = run(*command).output
    assert text.count("[bank]") == 3 and text.count("[Bank]") == 1


def test_the_vector_is_that_of_the_whole_text(weights: Path, corpus: Path) -> None:
    doc = make_nlp(weights, store=["layers"])("Bank! The bank is shut.")
    senses = find_senses("bank", str(corpus), weights=str(weights), n_senses=1, quiet=True)
    [context] = [c for c in senses.groups[0].contexts if c.text[2] == " is shut."]
    assert np.abs(context.vector - doc._.elmo_layers[-1, 3]).max() < 1e-5


def test_a_word_of_a_tokenized_corpus(weights: Path, tmp_path: Path) -> None:
    """The tokenizer would make two of it."""
    (tmp_path / "words.txt").write_text("I don't know\nDon't go\nWe don't\n", encoding="utf-8")
    lines = ["1\tI\t_", "2\tdon't\t_", ""] * 3
    (tmp_path / "words.conllu").write_text("\n".join(lines), encoding="utf-8")
    settings = {"weights": str(weights), "quiet": True}
    for name, tokenized in [("words.txt", True), ("words.conllu", False)]:
        found = find_senses("don't", str(tmp_path / name), tokenized=tokenized, **settings)
        assert sum(len(group.contexts) for group in found.groups) == 3
    with pytest.raises(ValueError, match="is 2 tokens"):
        find_senses("don't", str(tmp_path / "words.txt"), **settings)
    with pytest.raises(ValueError, match="is 2 tokens"):
        find_senses("two words", str(tmp_path / "words.conllu"), **settings)


def test_senses_of_python(weights: Path, corpus: Path) -> None:
    senses = find_senses("bank", str(corpus), weights=str(weights), n_senses=2, quiet=True)
    tree = ET.fromstring(str(viz.senses(senses, jupyter=False)))
    assert len(list(tree.iter(f"{SVG}a"))) == len(list(tree.iter("li"))) == 4
    corpus.write_text(TEXT.replace("lent", "kept"), encoding="utf-8")
    other = find_senses("bank", str(corpus), weights=str(weights), n_senses=2, quiet=True)
    ids = [
        {item.get("id") for item in ET.fromstring(str(viz.senses(each, jupyter=False))).iter("li")}
        for each in (senses, other)
    ]
    assert ids[0].isdisjoint(ids[1])  # a notebook shows both


def test_failures(weights: Path, corpus: Path, tmp_path: Path) -> None:
    for arguments, expected in [
        (["lent", "--in", corpus], "occurs 1 times"),
        (["crane", "--in", corpus], "does not occur in"),
        (["two words", "--in", corpus], "is 2 tokens"),
        (["bank", "--in", tmp_path / "gone"], "No corpus at"),
        (["bank", "--in", corpus, "-o", "a.doc"], "no suffix of a picture"),
        (["bank", "--in", corpus, "--senses", 9], "cannot be divided into 9"),
    ]:
        result = run("senses", *arguments, "-w", weights)
        assert result.exit_code == 1
        assert expected in " ".join(result.output.split())


def test_names_of_mixes_are_not_cut() -> None:
    """Nor do they lie outside of the picture."""
    names = [("trainable_lemmatizer", "elmo"), ("my_entity_recognizer", "second_listener")]
    picture = draw_mixes([Mix(*name, [0.2, 0.8], 1.0) for name in names], "x")
    picture.figure.draw_without_rendering()
    axes = picture.figure.axes[0]
    labels = {label.get_text().split("\n")[0]: label for label in axes.get_yticklabels()}
    assert set(labels) == {"trainable_lemmatizer", "my_entity_recognizer: second_listener"}
    assert all(label.get_window_extent().x0 >= 0 for label in labels.values())


def test_a_single_mix_has_cells() -> None:
    picture = draw_mixes([Mix("elmo", "doc.tensor", [0.2, 0.8], 1.0)], "x")
    assert picture.figure.axes[0].get_ylim() == (0.5, -0.5)


def test_plot_mix(weights: Path, tmp_path: Path) -> None:
    nlp = make_nlp(weights)
    nlp("Hello.")
    nlp.to_disk(tmp_path / "nlp")
    for name in ("mix.svg", "mix.png"):
        result = run("plot-mix", tmp_path / "nlp", "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
    texts = [t.text for t in ET.parse(tmp_path / "mix.svg").iter(f"{SVG}text")]
    assert texts.count("0.33") == 3
    assert (tmp_path / "mix.png").read_bytes().startswith(b"\x89PNG")
    out = tmp_path / "mix.html"
    data = json.loads(run("plot-mix", tmp_path / "nlp", "-o", out, "--json").stdout)
    assert data["output"] == str(out) and out.is_file()
    assert [set(mix) for mix in data["mixes"]] == [{"component", "listener", "weights", "gamma"}]


def test_similarity_and_surprisal(weights: Path) -> None:
    nlp = make_nlp(weights)
    nlp.add_pipe("elmo_surprisal", config={"weights": str(weights)})
    docs = [nlp("The bank."), nlp("money & bank"), nlp("The odd bank.")]
    page = viz.similarity(docs, page=True, jupyter=False)
    assert viz.similarity(iter(docs), page=True, jupyter=False) == page
    tree = ET.fromstring(str(page))
    assert [text.text for text in tree.iter(f"{SVG}text")].count("1.00") >= 3
    assert [item.text for item in tree.iter("li")] == ["The bank.", "money & bank", "The odd bank."]
    marks = list(ET.fromstring(str(viz.surprisal(docs, jupyter=False))).iter("mark"))
    assert [mark.text for mark in marks] == [
        "The",
        "bank",
        ".",
        "money",
        "bank",
        "The",
        "bank",
        ".",
    ]
    assert viz.similarity([docs[0][1:2], docs[2][2:3]], jupyter=False)  # equal but for rounding
    assert viz.similarity([docs[0], docs[0]], jupyter=False)
    with pytest.raises(ValueError, match="2 to 30 Docs"):
        viz.similarity(docs[:1])
    with pytest.raises(ValueError, match="elmo_surprisal"):
        viz.surprisal(nlp.make_doc("The bank."))


def test_two_equal_texts_are_darker_than_two_others() -> None:
    picture = draw_matrix(np.array([[1, 0.49], [0.49, 1]]), ["a", "b"], "Similarity", "")
    mesh = picture.figure.axes[0].collections[0]
    assert mesh.norm(1.0) == 1 and mesh.norm(0.49) == 0


def test_blanks(weights: Path) -> None:
    """Each blank has its words and probabilities, from the left, from the right and from both."""
    lm = LanguageModel.load(weights)
    words = ["The", "___", "odd", "___", "."]
    tree = ET.fromstring(str(viz.blanks(lm, words, 2, page=True, jupyter=False)))
    labels = [text.text for text in tree.iter(f"{SVG}text")]
    assert labels.count("The ___ odd ___ .") == 2 and labels.count("from both") == 2
    filled = [lm.fill(words, position, 2) for position in (1, 3)]
    expected = [guess for each in filled for side in each for guess in side]
    names = {word for word, _ in expected}
    assert [label for label in labels if label in names] == [word for word, _ in expected]
    assert [label for label in labels if label and label.endswith("%")] == [
        f"{probability:.1%}" for _, probability in expected
    ]
    with pytest.raises(ValueError, match="no blank"):
        viz.blanks(lm, ["The", "bank"])
    with pytest.raises(ValueError, match="A sentence is a list of words"):
        viz.blanks(lm, "The ___ bank")
