"""The page of commands is what the help texts are, and these keep to one style; the commands and
other names on all pages exist."""

from __future__ import annotations

import re
from collections import defaultdict
from pkgutil import resolve_name

from spacy.util import registry
from typer.main import get_group

from spacy_elmo.cli import app

from .commands import PAGE, make_page
from .pages import DOCS, ROOT


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


def test_commands_and_registered_names_exist() -> None:
    """What the pages call `elmo COMMAND` and `spacy-elmo.Thing.v1` is there to be called."""
    commands = get_group(app).commands
    registries = (registry.architectures, registry.misc, registry.readers)
    registered = {name for names in registries for name in names.get_all()}
    for page in [*ROOT.glob("README*.md"), *DOCS.glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        for command in re.findall(r"(?:`|python -m spacy )elmo ([a-z][a-z-]*)", text):
            assert command in commands, f"{page.name}: elmo {command}"
        for name in set(re.findall(r"spacy-elmo\.\w+\.v\d", text)) - {"spacy-elmo.Thing.v1"}:
            assert name in registered, f"{page.name}: {name}"
        for name in re.findall(r"`(spacy_elmo(?:\.\w+)+)", text):
            resolve_name(name)
