"""ELMo, deep contextualized word representations, as a spaCy component.

Importing this package imports nothing else, so that `spacy_elmo.bilm` and
`spacy_elmo.pretraining` run where there is no spaCy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .about import __version__

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from .encoding.encoder import Encoder
    from .encoding.job import encode
    from .lm.language_model import LanguageModel
    from .pipeline.add import add_elmo
    from .pipeline.mixes import Mix
    from .pipeline.save_pipeline import save_pipeline

__all__ = [
    "Encoder", "LanguageModel", "__version__", "add_elmo", "encode", "mixes", "save_pipeline",
    "set_vector_hooks",
]  # fmt: skip

LAZY = {
    "Encoder": "encoding.encoder",
    "LanguageModel": "lm.language_model",
    "add_elmo": "pipeline.add",
    "encode": "encoding.job",
    "save_pipeline": "pipeline.save_pipeline",
}


def mixes(nlp: Language) -> list[Mix]:
    """See `spacy_elmo.pipeline.mixes.mixes`."""
    from .pipeline.mixes import mixes

    return mixes(nlp)


def set_vector_hooks(doc: Doc) -> None:
    """See `spacy_elmo.pipeline.extensions.set_vector_hooks`."""
    from .pipeline.extensions import set_vector_hooks

    set_vector_hooks(doc)


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return getattr(import_module(f".{LAZY[name]}", __name__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
