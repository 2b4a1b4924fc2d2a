"""Pictures of what ELMo knows.

The functions ``draw_…`` return a figure of matplotlib, which a notebook shows; ``mark_…`` return
HTML, as displaCy does. With ``output``, a file is written too, whole or not at all: ``.html`` (a
page that refers to nothing outside itself), and for figures ``.svg``, ``.png``, ``.pdf``, ``.jpg``.
"""

from __future__ import annotations

from .blank_bars import draw_blanks
from .heat_maps import draw_mixes, draw_similarity
from .marked_surprisal import mark_surprisal
from .sense_map import draw_senses
from .training_curves import draw_training

__all__ = [
    "draw_blanks", "draw_mixes", "draw_senses", "draw_similarity", "draw_training",
    "mark_surprisal",
]  # fmt: skip
