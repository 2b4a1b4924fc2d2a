"""The fenced blocks of a page, run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spacy.cli._util import app as spacy_app
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_elmo.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What the tests cannot do; a comment before a block says so.
MARKS = ("needs a network", "needs a GPU")
BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELMO, SPACY = "python -m spacy elmo ", "python -m spacy "
# What makes a training short: for `spacy train`, and for `elmo pretrain`.
FEW_STEPS = "--training.max_steps 2 --training.eval_frequency 1"
FEW_PRETRAINING_STEPS = {
    "training.max_steps": 6, "training.warmup_steps": 1, "training.decay_steps": 2,
    "training.head_first": 1, "training.eval_every": 3, "training.batch_words": 60,
    "softmax.kind": "full", "vocab.min_count": 1,
}  # fmt: skip


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Mark, language and content of each fenced block."""
    return BLOCK.findall(page)


def assert_close(now: str, before: str) -> None:
    """Pictures have the same labels, in the same places up to rounding: another version of
    matplotlib places a letter elsewhere."""
    labels = [re.findall(r">([^<]+)</text>", text) for text in (now, before)]
    assert labels[0] == labels[1]
    numbers = [np.array(re.findall(r"-?\d+(?:\.\d+)?", text), float) for text in (now, before)]
    assert len(numbers[0]) == len(numbers[1])
    np.testing.assert_allclose(*numbers, rtol=0, atol=1)


def run_page(
    name: str, monkeypatch: pytest.MonkeyPatch, few_steps: str = FEW_STEPS
) -> dict[str, Any]:
    """Run a page of docs/, see `run_blocks`."""
    return run_blocks(blocks((DOCS / name).read_text(encoding="utf-8")), monkeypatch, few_steps)


def run_blocks(
    found: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch, few_steps: str = FEW_STEPS
) -> dict[str, Any]:
    """Run blocks without a mark, in their order and in the working directory.

    A block whose first line is a comment with a file's name is saved as that file; Python ones
    are not run then. Names live on from one snippet to the next, and are returned.
    """
    names: dict[str, Any] = {"__name__": "page"}
    for mark, language, content in found:
        if mark:
            continue
        saved = re.match(r"# ([\w-]+\.\w+)\n", content)
        if saved:
            Path(saved[1]).write_text(content, encoding="utf-8")
        elif language == "python":
            exec(content, names)
        elif language == "bash":
            for command in content.splitlines():
                run_command(command, monkeypatch, few_steps)
        else:
            assert language == "text", f"a block in {language} that nothing runs:\n{content}"
    return names


def run_command(command: str, monkeypatch: pytest.MonkeyPatch, few_steps: str = FEW_STEPS) -> None:
    """Run a command of spaCy's or ours in this process; a training takes a few steps."""
    assert command.startswith(SPACY), command
    ours = command.startswith(ELMO)
    arguments = shlex.split(command.removeprefix(ELMO if ours else SPACY), comments=True)
    with monkeypatch.context() as patch:
        if arguments[0] == "compare":
            arguments += ["--seeds", "1"]
            if "tagger" in load_config(arguments[1])["nlp"]["pipeline"]:
                arguments += ["--nlp.pipeline", '["tok2vec", "tagger"]']
        if arguments[0] in ("train", "compare"):
            patch.setenv("SPACY_CONFIG_OVERRIDES", few_steps)
        if arguments[0] == "pretrain":
            for setting, value in FEW_PRETRAINING_STEPS.items():
                arguments += [f"--{setting}", str(value)]
        result = CliRunner().invoke(app if ours else spacy_app, arguments)
    assert result.exit_code == 0, f"{command}\n{result.output}\n{result.exception!r}"
