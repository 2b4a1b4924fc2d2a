"""Commands that are killed: nothing is half-written, and a repeat leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_elmo.cli import app

from ..pipeline.helpers import write_weights

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
KILLED = """
import os, signal, sys

def hook(event, arguments):
    is_renamed = event == "os.rename" and {name!r} in str(arguments[1])
    if is_renamed or (event == "open" and str(arguments[0]).endswith({name!r})):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
from spacy_elmo.cli import app
app({arguments!r})
"""


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_weights(tmp_path / "weights")


def run_until(name: str, *arguments: object) -> None:
    """Run a command of `elmo` until it opens a file of a name, or renames something to it."""
    code = KILLED.format(name=name, arguments=list(map(str, arguments)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


@posix
def test_tokenize(tmp_path: Path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("A text.\n" * 50)
    command = ["tokenize", str(text), str(out), "--quiet"]
    run_until("shard-00000.txt.gz", *command)
    assert not out.exists()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert sorted(tmp_path.iterdir()) == [out, text]
    assert not list(out.glob(".*"))
