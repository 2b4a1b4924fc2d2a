"""ELMo, deep contextualized word representations, as a spaCy component.

Importing this package imports nothing else, so that `spacy_elmo.bilm` and
`spacy_elmo.pretraining` run where there is no spaCy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .about import __version__

if TYPE_CHECKING:
    from spacy.language import Language

    from .lm.language_model import LanguageModel
    from .pipeline.scalar_mix import Mix

__all__ = ["LanguageModel", "__version__", "mixes"]


def mixes(nlp: Language) -> list[Mix]:
    """See `spacy_elmo.pipeline.scalar_mix.mixes`."""
    from .pipeline.scalar_mix import mixes

    return mixes(nlp)


def __getattr__(name: str) -> Any:
    if name == "LanguageModel":
        from .lm.language_model import LanguageModel

        return LanguageModel
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
