"""The annotated sentences of the project, for the recipes to learn from."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

SCRIPTS = Path(__file__).parents[2] / "project" / "scripts"
_NAMES = run_path(str(SCRIPTS / "sentences.py"))

ENTITIES, PHRASE, TOPICS = _NAMES["ENTITIES"], _NAMES["PHRASE"], _NAMES["TOPICS"]
annotated_docs = _NAMES["annotated_docs"]
