"""Progress of long work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacy_elmo.cli.options import count_words
from spacy_elmo.util import progress
from spacy_elmo.util.progress import ProgressBar

from ..pipeline.helpers import write_language_model
from .helpers import run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time of day, which a test sets."""
    now = [100.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    yield now


def test_a_line_every_half_minute(clock: list[float], capsys: pytest.CaptureFixture) -> None:
    with ProgressBar("words", total=1000) as bar:
        for _ in range(70):  # seconds
            clock[0] += 1
            bar.update(10)
    assert capsys.readouterr().err.splitlines() == [
        "300 of 1,000 words, 10.0 words/s, 01:10 left",
        "600 of 1,000 words, 10.0 words/s, 00:40 left",
    ]


def test_the_total_may_be_unknown(clock: list[float], capsys: pytest.CaptureFixture) -> None:
    def items() -> Iterator[list[str]]:
        for _ in range(4):
            clock[0] += 20
            yield ["a", "b"] * 5000

    assert len(list(count_words(items()))) == 4
    assert capsys.readouterr().err.splitlines() == [
        "20,000 words, 500 words/s, 00:40",
        "40,000 words, 500 words/s, 01:20",
    ]


def test_resumed_work_has_its_own_speed(clock: list[float], capsys: pytest.CaptureFixture) -> None:
    with ProgressBar("steps", total=200, done=100) as bar:
        clock[0] += 50
        bar.update(50)
    assert capsys.readouterr().err == "150 of 200 steps, 1.00 steps/s, 00:50 left\n"


def test_slow_work(clock: list[float], capsys: pytest.CaptureFixture, monkeypatch) -> None:
    for on_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda value=on_terminal: value)
        with ProgressBar("steps", total=20) as bar:
            clock[0] += 38.1
            bar.update(10)
        written = capsys.readouterr().err
        assert "3.81 s/step" in written and "s/ " not in written


def test_quiet(clock: list[float], capsys: pytest.CaptureFixture, monkeypatch) -> None:
    for on_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda value=on_terminal: value)
        with ProgressBar("words", quiet=True) as bar:
            clock[0] += 100
            bar.update()
    assert capsys.readouterr().err == ""


def test_commands_report_to_the_error_stream(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)  # a line for each update
    weights = write_language_model(tmp_path / "weights", ["a", "b", "."])
    text = tmp_path / "text.txt"
    text.write_text("a b . b a b .\n" * 3, encoding="utf-8")
    tokenized = run("tokenize", text, tmp_path / "shards")
    measured = run("perplexity", text, "-w", weights, "--json")
    assert "21 words, " in tokenized.stderr and "21 of 21 words, " in measured.stderr
    assert "words/s" not in tokenized.stdout + measured.stdout
    for command in (["tokenize", text, tmp_path / "quiet"], ["perplexity", text, "-w", weights]):
        result = run(*command, "--quiet")
        assert (result.exit_code, result.stderr) == (0, "")
