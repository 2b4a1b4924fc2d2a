"""Commands, run as on a wide terminal."""

from __future__ import annotations

from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from spacy_elmo.cli import app


def run(*arguments: Any, **settings: Any) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"}, **settings)


def succeed(*arguments: Any) -> str:
    """What a command prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments: Any) -> str:
    """What a command that fails prints, on one line."""
    result = run(*arguments)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.output
    return joined(result.output)


def joined(output: str) -> str:
    """Without the line breaks that fit it to a terminal."""
    return " ".join(output.split())
