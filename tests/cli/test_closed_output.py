"""A standard output that cannot be written to ends each command in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = f"{sys.executable} -m spacy elmo"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "command, message",
    [
        ("info en_sm --json > /dev/full", "No space left on device"),
        ("info en_sm > /dev/full", "No space left on device"),
        ("info en_sm --json | true", "Broken pipe"),
    ],
)
def test_an_output_that_is_full_or_closed(command: str, message: str) -> None:
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {COMMAND} {command}"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert result.stderr == f"Cannot write the output: {message}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_json_to_an_output_that_was_never_open() -> None:
    command = ["bash", "-c", f"{COMMAND} info en_sm --json >&-"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
