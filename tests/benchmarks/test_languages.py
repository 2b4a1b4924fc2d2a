"""What an hour gains in each language: which runs there are, the table, and a run of few steps."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
import tables as tables_of
from languages import PART, TEXTS, TIMED, read_data, units
from results import Results
from tables import LANGUAGE_ARMS as ARMS

from ..pretraining.helpers import PROSE
from .conftest import Run, pack

MINUTES = 25.0


def test_units() -> None:
    """All arms on the project's text; ELMo on others and on the first words."""
    given = Namespace(
        langs=["de", "pt", "ko"], seeds=[0], arms=ARMS, texts=TEXTS, words=[0], minutes=60.0,
        own=None,
    )  # fmt: skip
    found = {(unit["lang"], unit["text"]): arms for unit, arms in units(given)}
    assert len(found) == 7
    assert {key for key, arms in found.items() if len(arms) == len(ARMS)} == {
        ("de", "novels"), ("pt", "both"), ("ko", "both")
    }  # fmt: skip
    assert found["de", "both"] == found["pt", "novels"] == ["ELMo"]
    given.words, given.langs, given.texts = [1000, 0], ["de"], ["novels"]
    assert [(unit.get("words"), len(arms)) for unit, arms in units(given)] == [(1000, 1), (None, 4)]


def test_data_of_another_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One text, which all arms read; the script of the project gets it and the treebank."""
    given = Namespace(
        langs=["fr"], seeds=[0], arms=ARMS, texts=None, words=[0], minutes=60.0, own=tmp_path,
        data=None, sentences=400, size="full",
    )  # fmt: skip
    [(unit, arms)] = units(given)
    assert unit["text"] == "both" and arms == list(ARMS)
    steps: list[dict[str, object]] = []
    monkeypatch.setattr("languages.step", lambda script, folder, **more: steps.append(more))
    (tmp_path / "run").mkdir()
    for _ in range(2):
        read_data(unit, tmp_path / "run", given)
    [options] = steps
    assert options["text"] == str(tmp_path / "fr" / "text.txt") and options["lang"] == "fr"
    assert options["conllu"] == tmp_path / "fr" / "conllu" and "local" not in options


def test_tables(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    for arm, scores in zip(ARMS, ([80.0, 84.0], [85.0], [86.0], [90.0, 92.0]), strict=True):
        for seed, score in enumerate(scores):
            unit = {"lang": "de", "text": "novels", "seed": seed}
            unit |= {"minutes": MINUTES} if arm in TIMED else {}
            unit |= {"sentences": 400, "steps": 1000, "arm": arm}
            results.add(PART, unit, None, {"scores": {"tagger": score}, "perplexity": 100.0})
    unit = {"lang": "de", "text": "modern", "seed": 0, "minutes": MINUTES, "sentences": 400}
    results.add(PART, {**unit, "arm": "ELMo"}, None, {"scores": {"tagger": 82.0}})
    longer = {**unit, "text": "novels", "minutes": 90.0, "arm": "ELMo"}
    another = {**unit, "text": "novels", "bilm_seed": 1, "arm": "ELMo"}
    for unit in (longer, another):  # are not among the means
        results.add(PART, unit, None, {"scores": {"tagger": 94.6}, "perplexity": 1.0})
    for words in (None, 100_000):  # the text that was cut is not among the means
        unit = {"lang": "de", "text": "novels", "seed": 0, "minutes": MINUTES, "arm": "ELMo"}
        if words:
            found = {"scores": {"tagger": 85.0}}
            results.add(PART, {**unit, "words": words, "sentences": 400}, None, found)
        printed = [*tables_of.languages(tmp_path / "results.jsonl")]
        assert printed[2:] == ["| German | 82.0 → **91.0**, 50% | – | – |"]
    facts = tmp_path / "facts.json"
    german = {"sources": [{"words": "2.20 M"}, {"words": "0.49 M"}], "treebank": "GSD"}
    facts.write_text(json.dumps({"xx": german, "de": german}), encoding="utf-8")
    *_, german_row, other_row = tables_of.language_weights(facts)
    assert german_row == "| `de_sm` | 2.7 | GSD |"
    assert other_row == "| `xx_sm` | 2.7 | GSD |"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_of_few_steps(data: Path, tmp_path: Path, run: Run) -> None:
    for name in ("novels.train", "novels.valid", "modern.train"):
        pack(data / "languages" / "de" / f"{name}.txt.xz", f"{PROSE}\n" * 60)
    given = ["--data", data, "--langs", "de", "--texts", "novels", "--size", "tiny"]
    given += ["--minutes", 0.05, "--steps", 3]
    run("languages", tmp_path, *given)
    lines = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["unit"]["arm"] for line in lines] == list(ARMS)
    assert all(
        set(json.loads(line)["found"]["scores"]) == {"tagger", "parser", "ner"} for line in lines
    )
    run("languages", tmp_path, *given)
    assert (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines() == lines
