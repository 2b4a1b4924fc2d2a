"""The page of commands is what the help texts are, and these keep to one style."""

from __future__ import annotations

from collections import defaultdict

from typer.main import get_group

from spacy_elmo.cli import app

from .commands import PAGE, make_page


def test_page_is_written_from_the_help_texts() -> None:
    """If not: python -m tests.docs.commands"""
    assert PAGE.read_text(encoding="utf-8") == make_page()


def test_options_mean_the_same_everywhere() -> None:
    short = defaultdict(set)
    for name, command in get_group(app).commands.items():
        assert command.help and command.help.split("\n")[0].endswith("."), name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name}: {parameter.name}"
            for option in parameter.opts:
                if option.startswith("--"):
                    short[option].add(next((o for o in parameter.opts if len(o) == 2), None))
    for option in ("--output", "--weights", "--lang", "--json", "--quiet", "--gpu-id", "--force"):
        assert len(short[option]) == 1, f"{option}: {short[option]}"
