"""Draws what ELMo knows.

Each function returns a matplotlib figure, which a notebook shows. With ``output``, it also writes a
file, whole or not at all: ``.svg``, ``.png``, ``.pdf`` or ``.jpg``. `draw_surprisal` marks a text
as displaCy does.
"""

from __future__ import annotations

from .layer_mixes import draw_mixes
from .sense_map import draw_senses
from .surprisal import draw_surprisal
from .training_curves import draw_training

__all__ = ["draw_mixes", "draw_senses", "draw_surprisal", "draw_training"]
