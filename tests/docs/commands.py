"""``docs/commands.md`` from the help texts: ``python -m tests.docs.commands`` writes it."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_group

from spacy_elmo.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
START = """\
# Commands

This page is generated from the texts that `--help` shows.

- Options mean the same everywhere: `--weights` takes the name or directory of a biLM, `--lang`
  a language code of spaCy, `--gpu-id` a GPU (-1: the CPU), and `--quiet` leaves out all but errors.
- `--json` is for other programs: the standard output is one JSON document, or nothing if there was
  an error; `output` in it names the file that was written. All but `add`, `demo` and `init-config`
  have it.
- Long work shows a bar on a terminal, and elsewhere (all but `download`) a line every half minute.
- An error is one message on the standard error stream, with exit code 1; Ctrl-C exits with 130.

"""


def make_page() -> str:
    """The page."""
    lines = ["| command | |", "|---|---|"]
    sections = []
    for name, command in get_group(app).commands.items():
        summary, *rest = paragraphs(command)
        lines.append(f"| [`elmo {name}`](#elmo-{name}) | {summary} |")
        sections.append(f"\n## elmo {name}")
        sections.append(f"\n```text\nUsage: python -m spacy elmo {usage(name, command)}\n```")
        sections += [
            "\n" + textwrap.fill(text, 100, break_on_hyphens=False) for text in [summary, *rest]
        ]
        sections.append("")
        sections += ["| | |", "|---|---|", *rows(command)]
    return START + "\n".join([*lines, *sections]) + "\n"


def usage(name: str, command: Any) -> str:
    """The name of the command, its arguments, and where its options stand."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    names = [
        each if argument.required or each.startswith("[") else f"[{each}]"
        for argument in arguments
        for each in [argument.metavar or (argument.name or "").upper()]
    ]
    return " ".join([name, *names, "[OPTIONS]"])


def paragraphs(command: Any) -> list[str]:
    """The help text, one line for each paragraph."""
    parts = inspect.cleandoc(command.help or "").split("\n\n")
    return [markdown(" ".join(part.split())) for part in parts]


def markdown(text: str) -> str:
    """Plain text as Markdown."""
    for character, written in {"|": r"\|", "<": "&lt;", "___": "`___`"}.items():
        text = text.replace(character, written)
    return text


def rows(command: Any) -> Iterator[str]:
    """A row for each argument and option."""
    for parameter in command.params:
        help_text = getattr(parameter, "help", None) or ""
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or (parameter.name or '').upper()}`".replace("|", r"\|")
        else:
            names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        default = parameter.default
        if default not in (None, False, ()) and not callable(default):
            help_text += f" (default: `{default}`)"
        yield f"| {names} | {markdown(help_text)} |"


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
