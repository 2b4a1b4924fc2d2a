"""The demo as a page of pictures: senses of a word, its occurrences compared, surprisal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from spacy.language import Language
from spacy.tokens import Doc

from ..senses.clusters import MOST_ITEMS
from ..senses.occurrences import MIN_CONTEXTS, Context, group, similarities
from ..viz.contexts import draw_senses
from ..viz.page import html_page
from ..viz.picture import Picture
from ..viz.similarity import draw_matrix
from ..viz.surprisal import draw_surprisal
from .demo_contexts import Found, accuracy

MOST = 20  # occurrences in the matrix, sentences with surprisal


def make_page(nlp: Language, docs: Sequence[Doc], found: Found) -> str:
    """The page in HTML, which refers to nothing outside itself.

    Args:
        nlp: the pipeline that has read the Docs; with a component elmo_surprisal, the page shows
            surprisal too.
        docs: sentences.
        found: the occurrences of words in them. The first word is shown if it has enough of them,
            in their order if their senses are known.

    Raises:
        ValueError: there is nothing to draw.
    """
    pictures: list[Picture] = []
    word, contexts = next(iter(found.items()), ("", []))
    if len(contexts) >= MIN_CONTEXTS:
        senses = group(word, contexts[:MOST_ITEMS], nlp, complete=len(contexts) <= MOST_ITEMS)
        if contexts[0].row is None:
            contexts = [context for each in senses.groups for context in each.contexts]
        pictures += [draw_senses(senses), draw_occurrences(word, contexts[:MOST])]
    with suppress(ValueError):  # no word has a surprisal
        pictures.append(draw_surprisal(docs[:MOST]))
    if not pictures:
        raise ValueError(
            f"There is nothing to draw: no word but stop words occurs {MIN_CONTEXTS} times in the "
            f"text, and none has a surprisal, for which a language-model head must know it."
        )
    return html_page("ELMo at work", [picture.html() for picture in pictures])


def draw_occurrences(word: str, contexts: list[Context]) -> Picture:
    """Each occurrence of a word compared with each other one, by what surrounds it.

    Args:
        word: for the title.
        contexts: in their order; ``row`` is the sense, None if it is not known.
    """
    cosines = similarities(contexts)
    lines = ["{}[{}]{}".format(*context.text) for context in contexts]
    caption = "The darker a cell, the more similar is what surrounds the word in two sentences."
    if contexts[0].row is not None:
        lines = [f"{context.row}: {line}" for context, line in zip(contexts, lines, strict=True)]
        n_right = accuracy(contexts, cosines).sum()
        caption += (
            f" The sentences are in the order of the word's senses, which ELMo was not told: for "
            f"{n_right:.0f} of {len(contexts)}, the most similar other one has the same sense."
        )
    return draw_matrix(cosines, lines, f"Occurrences of “{word}”", caption)
