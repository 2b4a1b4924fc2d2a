"""Every kind of page, opened in a browser: nothing is cut off, covered, too small or silent."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy

from spacy_elmo import LanguageModel, viz
from spacy_elmo.cli.demo_contexts import text_contexts
from spacy_elmo.cli.demo_page import make_page
from spacy_elmo.pipeline.mixes import Mix
from spacy_elmo.senses.occurrences import Context, group
from spacy_elmo.viz.contexts import draw_senses
from spacy_elmo.viz.mixes import draw_mixes
from spacy_elmo.viz.page import html_page

from ..pipeline.helpers import make_nlp, write_language_model
from ..threads import one_thread  # noqa: F401
from .browser import DESKTOP, PHONE, find_chromium, open_pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_chromium() is None,
        reason="no Chromium: install one, or name it in the environment variable CHROMIUM",
    ),
]
SVG = "{http://www.w3.org/2000/svg}"
SMALLEST = 9.5  # pixels of a label on a phone
LONG = "Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenauszahlungsstelle"
SENTENCES = [
    "The bank lent money (too much).",
    f"A bank & <b>river</b> flows by {LONG}!!!!!!!!",
    "Bank! The bank is shut, although they had promised to open it early in the morning.",
    "배가 강둑에 닿자 사람들이 모두 내려서 은행으로 걸어갔고, 그 뒤로는 아무도 그들을 보지 못했다.",
    "The bank.",
]


def make_senses(n: int = 60, n_groups: int = 8) -> str:
    """A page of contexts in groups, with keywords that are long and wide."""
    nlp, random = spacy.blank("en"), np.random.default_rng(0)
    contexts = []
    for i in range(n):
        vector = random.normal(size=12)
        vector[i % n_groups] += 6
        left, right = f"{LONG} {'internationally' * (i % 3)} ", " & <b>its</b> river "
        if i % n_groups == 0:
            left, right = "은행나무가 늘어선 강둑에 ", " 닿았다"
        text = (f"{i} {left}", "bank", f"{right}{'word ' * (i % 40)}")
        contexts.append(Context(text, vector, vector[None]))
    return draw_senses(group("bank", contexts, nlp, n_groups)).html(page=True)


def make_mixes(n_layers: int) -> str:
    names = [("elmo", "elmo"), ("tagger", "0"), ("entity_recognizer", "second_listener")]
    mixes = []
    for number, (component, listener) in enumerate(names):
        weights = [0.001] * n_layers
        weights[number % n_layers] = 1 - 0.001 * (n_layers - 1)
        mixes.append(Mix(component, listener, weights, 10.0**number))
    return draw_mixes(mixes, "en_pipeline_with_a_rather_long_name").html(page=True)


def make_training(folder: Path, perplexities: list[float]) -> str:
    """A page of runs that end with these perplexities."""
    for number, last in enumerate(perplexities):
        entries = []
        for step in range(0, 5001, 10):
            value = last + 40_000 * 2 ** (-step / 300)
            entry = {"step": step, "words": 7321 * step, "loss": np.log(value), "lr": 1e-4 / last}
            if step % 500 == 0:
                entry |= {"forward": 1.2 * value, "backward": 0.9 * value, "mean": value}
            entries.append(json.dumps(entry))
        run = folder / f"{LONG}-{number}"
        run.mkdir()
        (run / "log.jsonl").write_text("\n".join(entries), encoding="utf-8")
    return str(viz.training(sorted(folder.iterdir()), page=True, jupyter=False))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    words = ["the", "The", "bank", "money", ".", "은행으로", LONG, "a_very_long_word_" * 4]
    weights = write_language_model(tmp_path_factory.mktemp("weights") / "tiny", words)
    nlp = make_nlp(weights, store=["layers"])
    nlp.add_pipe("elmo_surprisal", config={"weights": str(weights)})
    docs = list(nlp.pipe(SENTENCES))
    lm = LanguageModel.load(weights)
    blanks = ["The", "bank", "___", "the", LONG, "___", "."]
    made = {
        "senses": make_senses(),
        "one sense": make_senses(3, 1),
        "mixes": make_mixes(3),
        "mixes of a deep biLM": make_mixes(7),
        "similarity": viz.similarity(docs, page=True, jupyter=False),
        "similarity of many": viz.similarity(docs * 6, page=True, jupyter=False),
        "surprisal": viz.surprisal(docs, page=True, jupyter=False),
        "blanks": viz.blanks(lm, blanks, 5, page=True, jupyter=False),
        "demo": make_page(nlp, *text_contexts(nlp, " ".join(SENTENCES))),
        "training": make_training(tmp_path_factory.mktemp("one"), [30.0]),
        "training of several": make_training(tmp_path_factory.mktemp("two"), [20.0, 90.0, 400.0]),
    }
    return {name: str(page) for name, page in made.items()}


@pytest.fixture(scope="module")
def findings(
    pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, int], dict[str, Any]]:
    found, console = open_pages(tmp_path_factory.mktemp("browser"), pages)
    assert console == []
    return {(one["name"], one["width"]): one for one in found}


def test_every_page_was_opened_twice(pages: dict[str, str], findings: Any) -> None:
    assert set(findings) == {(name, width) for name in pages for width in (PHONE, DESKTOP)}
    for (name, width), found in findings.items():
        assert found["height"] > 150, (name, width)
        assert found["loaded"] == [], (name, width)


def test_nothing_is_wider_than_the_window(findings: Any) -> None:
    for where, found in findings.items():
        assert (found["wider"], found["scrolls"]) == ([], False), where


def test_what_is_drawn(pages: dict[str, str], findings: Any) -> None:
    """Every label of the file is drawn, and inside of its drawing."""
    for (name, width), found in findings.items():
        drawings = list(ET.fromstring(pages[name]).iter(f"{SVG}svg"))
        assert len(found["drawings"]) == len(drawings) == (name != "surprisal") + (name == "demo")
        for drawn, drawing in zip(found["drawings"], drawings, strict=True):
            assert drawn["shapes"] > 0, (name, width)
            assert drawn["labels"] == ["".join(t.itertext()) for t in drawing.iter(f"{SVG}text")]
            assert drawn["outside"] == [], (name, width)
            assert drawn["width"] > 300, (name, width)


def test_labels_can_be_read(findings: Any) -> None:
    for (name, width), found in findings.items():
        for drawn in found["drawings"]:
            assert drawn["overlaps"] == [], (name, width)
            if name not in ("similarity of many", "mixes of a deep biLM"):
                assert drawn["smallest"] >= SMALLEST, (name, width)


def test_hover(pages: dict[str, str], findings: Any) -> None:
    """A mark shows its title, or that of another mark that covers it."""
    for (name, width), found in findings.items():
        titles = [own for own, _ in found["hover"]]
        covered = [own for own, seen in found["hover"] if own != seen]
        tree = ET.fromstring(pages[name])
        expected = [a.findtext(f"{SVG}title") for a in tree.iter(f"{SVG}a")]
        expected += [mark.get("title") for mark in tree.iter("mark")]
        assert sorted(titles) == sorted(expected), (name, width)
        assert {seen for _, seen in found["hover"]} <= {*titles}, (name, width)
        assert len(covered) <= len(titles) / 3, (name, width)


def test_a_tap_leads_to_the_sentence(pages: dict[str, str], findings: Any) -> None:
    """A phone has no pointer: there, a mark leads to its sentence in the list."""
    for (name, width), found in findings.items():
        tree = ET.fromstring(pages[name])
        expected = [[a.findtext(f"{SVG}title"), True] for a in tree.iter(f"{SVG}a")]
        got = [[text and text.strip(), seen] for text, seen in found["links"]]
        assert got == expected, (name, width)
        assert bool(expected) == (name in ("senses", "one sense", "demo")), (name, width)


def test_faults_are_found(tmp_path: Path) -> None:
    """The measurements can fail."""
    page = html_page("Faults", [
        '<div style="width:500px">wide</div><img src="http://127.0.0.1:9/missing.png"/>',
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" style="width:100%">',
        '<text x="10" y="10" font-size="2">one label</text><text x="12" y="10">another</text>',
        '<text x="90" y="90">far out</text><path d="M5 5 z"/>',
        '<a href="#here"><title>below</title><path d="M20 20 h20 v20 h-20 z"/></a>',
        '<a href="#gone"><title>above</title><path d="M10 10 h40 v40 h-40 z"/></a>',
        "</svg><script>console.error('an error')</script>",
    ])  # fmt: skip
    [phone, desktop], console = open_pages(tmp_path, {"faults": page})
    assert any("an error" in line for line in console)
    assert phone["scrolls"] and "wide" in phone["wider"][0] and not desktop["scrolls"]
    [drawing] = phone["drawings"]
    assert drawing["overlaps"] == [["one label", "another"]]
    assert drawing["smallest"] < SMALLEST and drawing["shapes"] == 2
    assert any("far out" in item for item in drawing["outside"])
    assert ["below", "above"] in phone["hover"] and ["above", "above"] in phone["hover"]
    assert phone["links"] == [[None, False]] * 2 and len(phone["loaded"]) == 1, (phone, console)
