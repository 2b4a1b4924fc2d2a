"""ELMo, deep contextualized word representations, as a spaCy component.

Importing this package imports nothing else, so that `spacy_elmo.bilm` runs where there is no spaCy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .about import __version__

if TYPE_CHECKING:
    from .encoding.encoder import Encoder
    from .encoding.job import encode
    from .lm.language_model import LanguageModel
    from .pipeline.add.add_elmo import add_elmo
    from .pipeline.mixes import mixes
    from .senses.occurrences import find_senses

__all__ = [
    "Encoder", "LanguageModel", "__version__", "add_elmo", "encode", "find_senses", "mixes",
]  # fmt: skip

LAZY = {
    "Encoder": "encoding.encoder",
    "LanguageModel": "lm.language_model",
    "add_elmo": "pipeline.add.add_elmo",
    "encode": "encoding.job",
    "find_senses": "senses.occurrences",
    "mixes": "pipeline.mixes",
}


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return getattr(import_module(f".{LAZY[name]}", __name__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
