"""What is named exists: the commands and results of the documentation, the tests of a benchmark."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

from spacy.util import registry

from spacy_elmo.cli import app

ROOT = Path(__file__).parents[2]


def test_commands_and_registered_names_exist() -> None:
    """What the pages call `elmo COMMAND` and `spacy-elmo.Thing.v1` is there to be called."""
    commands = {command.name for command in app.registered_commands}
    registries = (registry.architectures, registry.misc, registry.readers)
    registered = {name for names in registries for name in names.get_all()}
    for page in [*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        for command in re.findall(r"(?:`|python -m spacy )elmo ([a-z][a-z-]*)", text):
            assert command in commands, f"{page.name}: elmo {command}"
        for name in set(re.findall(r"spacy-elmo\.\w+\.v\d", text)) - {"spacy-elmo.Thing.v1"}:
            assert name in registered, f"{page.name}: {name}"

        for name in re.findall(r"`(spacy_elmo(?:\.\w+)+)", text):
            resolve_name(name)
