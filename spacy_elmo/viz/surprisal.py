"""Marks the surprisal of each word in a text, by displaCy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spacy import displacy
from spacy.tokens import Doc, Span

MOST_BITS, DARKEST = 20.0, 0.6  # a word with so many bits or more has this opacity


def draw_surprisal(texts: Doc | Span | Iterable[Doc | Span]) -> str | None:
    """Mark how unexpected each word is: the less expected, the darker.

    Each word has its surprisal in bits beside it. Words outside the vocabulary have none.

    Args:
        texts: Docs or Spans from a pipeline with the component elmo_surprisal.

    Returns:
        HTML; in a notebook None, for displaCy shows the texts there.

    Raises:
        ValueError: no text has a surprisal.
    """
    marked: list[dict[str, Any]] = []
    colours: dict[str, str] = {}
    for text in [texts] if isinstance(texts, (Doc, Span)) else texts:
        ents, start = [], text[0:1].start_char
        for token in text:
            bits = token._.surprisal if token.has_extension("surprisal") else None
            if bits is not None:
                begin, label = token.idx - start, f"{bits:.1f}"
                ents.append({"start": begin, "end": begin + len(token), "label": label})
                colours[label] = f"rgba(0, 114, 178, {min(bits / MOST_BITS, 1) * DARKEST:.2f})"
        marked.append({"text": text.text, "ents": ents})
    if not colours:
        raise ValueError("No text has a surprisal: first call nlp.add_pipe('elmo_surprisal').")
    settings: Any = {"style": "ent", "manual": True, "options": {"colors": colours}}
    return displacy.render(marked, **settings)
