"""Pictures of what ELMo knows: HTML as text, or shown in a notebook, as displaCy does.

Each function takes ``page`` (return a whole page instead of one element) and ``jupyter`` (show it
and return None; by default, in a notebook). The HTML refers to nothing outside itself. The
functions named ``draw_…`` in this folder return a `Picture`, whose ``save`` writes
HTML, SVG or images.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..lm.language_model import LanguageModel
from ..pipeline.mixes import mixes as find_mixes
from ..senses.occurrences import Senses
from .blanks import draw_blanks
from .contexts import draw_senses
from .mixes import draw_mixes
from .picture import Picture
from .similarity import draw_similarity
from .surprisal import draw_surprisal
from .training import draw_training

__all__ = ["Picture", "blanks", "mixes", "senses", "similarity", "surprisal", "training"]


def blanks(
    lm: LanguageModel,
    words: Sequence[str],
    n: int = 5,
    *,
    page: bool = False,
    jupyter: bool | None = None,
) -> str | None:
    """Draw what fills the blanks (``___``) of a sentence, given as words.

    Raises:
        ValueError: there is no blank, or n is below 1.
    """
    return draw_blanks(lm, words, n).show(page, jupyter)


def mixes(nlp: Language, *, page: bool = False, jupyter: bool | None = None) -> str | None:
    """Draw how each component of a pipeline mixes the layers of its biLM.

    Raises:
        ValueError: the pipeline has no mix.
    """
    return draw_mixes(find_mixes(nlp), nlp.meta["name"]).show(page, jupyter)


def senses(found: Senses, *, page: bool = False, jupyter: bool | None = None) -> str | None:
    """Draw the contexts of a word, grouped by similarity: see `spacy_elmo.find_senses`."""
    return draw_senses(found).show(page, jupyter)


def similarity(
    texts: Iterable[Doc | Span], *, page: bool = False, jupyter: bool | None = None
) -> str | None:
    """Draw how similar several Docs or Spans are, each to each.

    Raises:
        ValueError: there are too few or too many.
    """
    return draw_similarity(list(texts)).show(page, jupyter)


def surprisal(
    texts: Doc | Span | Iterable[Doc | Span], *, page: bool = False, jupyter: bool | None = None
) -> str | None:
    """Draw how unexpected each word is, in Docs that the component elmo_surprisal has read.

    Raises:
        ValueError: it has not read them.
    """
    chosen = [texts] if isinstance(texts, (Doc, Span)) else list(texts)
    return draw_surprisal(chosen).show(page, jupyter)


def training(
    runs: str | Path | Sequence[str | Path], *, page: bool = False, jupyter: bool | None = None
) -> str | None:
    """Draw loss, held-out perplexity and learning rate of pretraining runs, by the words read.

    Args:
        runs: the directory of a run of ``elmo pretrain``, or its log, or several to compare; they
            need not have finished.
        page, jupyter: as in the other functions.

    Raises:
        ValueError: there is no log, or it is damaged or has nothing to draw.
    """
    chosen = [runs] if isinstance(runs, (str, Path)) else runs
    return draw_training([Path(run) for run in chosen]).show(page, jupyter)
