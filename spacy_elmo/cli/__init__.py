"""``python -m spacy elmo …``: importing this module adds the commands to spaCy's command line.

Every ``spacy`` command imports it, so the commands import heavy modules inside their functions.
"""

from __future__ import annotations

from spacy.cli import app as spacy_app

# Each adds its command, in the order of the help.
from . import (  # noqa: F401  # isort: skip
    demo, add, compare, info, download, encode, convert, init_config, tokenize, pretrain,
    plots, perplexity, predict, senses,
)  # fmt: skip
from .options import app

spacy_app.add_typer(app)
