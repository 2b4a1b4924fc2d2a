from __future__ import annotations

import sys

import pytest

from spacy_elmo.pretraining.run import log
from spacy_elmo.pretraining.run.log import Console


def run(reporter: Console, total: int = 6, done: int = 2) -> None:
    reporter.print("before")
    with reporter.steps(total, done):
        for step in range(done + 1, total + 1):
            reporter.step()
            reporter.show(step, loss=1.5, speed=1234.5)
            if step == 4:
                reporter.print("a message")
    reporter.print("after")


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    run(Console())
    lines = capsys.readouterr().err.splitlines()
    # The first and the last line, and none between within half a minute.
    assert lines == [
        "before",
        "step 3 of 6: loss 1.500, 1,234 words/s, 0:00:00 left",
        "a message",
        "step 6 of 6: loss 1.500, 1,234 words/s, 0:00:00 left",
        "after",
    ]


def test_time_left_is_reckoned_from_the_steps_of_this_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: clock[0])
    reporter = Console()
    with reporter.steps(total=1000, done=500):
        clock[0] += 100
        reporter.show(510, 1.0, 1.0)  # 10 s a step, 490 to go
        clock[0] += 29
        reporter.show(520, 1.0, 1.0)
        clock[0] += 1
        reporter.show(630, 1.0, 1.0)  # 1 s a step, 370 to go
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(", ")[-1] for line in lines] == ["1:21:40 left", "0:06:10 left"]
    assert lines[1].startswith("step 630 of 1,000")


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    run(Console(quiet=True))
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


def test_a_bar_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run(Console())
    captured = capsys.readouterr()
    assert captured.out == ""
    for text in ["before\n", "a message\n", "after\n", "6/6", "loss 1.500, 1,234 words/s"]:
        assert text in captured.err
    assert "step 3 of 6" not in captured.err
