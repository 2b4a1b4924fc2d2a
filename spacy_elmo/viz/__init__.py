"""Draws what ELMo knows.

Each function returns a matplotlib figure, which a notebook shows. With ``output``, it also writes a
file, whole or not at all: ``.svg``, ``.png``, ``.pdf`` or ``.jpg``. `draw_surprisal` marks a text
as displaCy does.
"""

from __future__ import annotations

from .blank_bars import draw_blanks as draw_blanks
from .heat_maps import draw_mixes as draw_mixes
from .heat_maps import draw_similarity as draw_similarity
from .sense_map import draw_senses as draw_senses
from .surprisal import draw_surprisal as draw_surprisal
from .training_curves import draw_training as draw_training
