"""The sources of weights in the meta of the pipeline that they are part of."""

from __future__ import annotations

from pathlib import Path

import srsly
from spacy.language import Language

from ..weights.layout import Card


def add_sources(nlp: Language, card: Card) -> bool:
    """Add the sources of weights to ``nlp.meta["sources"]``, and return whether any were new."""
    sources = nlp._meta.get("sources") or []  # nlp.meta would go over all components
    new = [source for source in card.meta.get("sources", []) if source not in sources]
    if new:
        nlp._meta["sources"] = [*sources, *new]
    return bool(new)


def update_saved_sources(meta_json: Path, nlp: Language, component: str) -> None:
    """Write a pipeline's sources to its saved meta, which spaCy writes before its components.

    Args:
        meta_json: the file; others than those of a pipeline with the component are left alone.
        nlp: the pipeline.
        component: name of the component that is being saved.
    """
    meta = srsly.read_json(meta_json) if meta_json.is_file() else {}
    if component in meta.get("components", ()):
        srsly.write_json(meta_json, {**meta, "sources": nlp._meta["sources"]})
