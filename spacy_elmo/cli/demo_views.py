"""The parts of the demo: nearest contexts, a score, groups of contexts, blanks."""

from __future__ import annotations

import textwrap

import numpy as np
from spacy.language import Language
from typer import echo, style  # which leave colours out where there is no terminal
from wasabi import msg

from ..lm.language_model import BLANK, LanguageModel
from ..senses.clusters import divide
from ..senses.occurrences import MOST_SENSES, Context, similarities
from .demo_contexts import Found, accuracy, layer_cosines
from .find_blanks import find_blanks
from .predict import WAYS

WIDTH = 80  # columns
SHOWN, NEAREST = 4, 3  # of the built-in words; sentences near one
REPEATED, CONTEXTS = 6, 12  # words of the user's text; contexts of each
MARKS = {True: style("✔", fg="green"), False: style("✘", fg="red")}
BLANKS = """\
Let's ___ to improvisation in this skit. The river ___ into the sea. She opened the ___ and looked \
outside. He was born in ___ and died in 1945."""


def show_built_in(nlp: Language, lm: LanguageModel | None, found: Found) -> None:
    """The demo on its own sentences.

    Args:
        nlp: a tokenizer.
        lm: None if the weights have no head.
        found: the contexts of the built-in words; the ``row`` of each is its sense.
    """
    title(
        "One word, several meanings",
        "A static vector is the same in every sentence. ELMo's depend on the sentence: below each "
        "one are those in which what surrounds the word is most similar, with the cosine. It is "
        "above 0 where two have more in common than any two sentences with the word.",
    )
    for contexts in list(found.values())[:SHOWN]:
        senses = [context.row for context in contexts]
        cosines = similarities(contexts)
        np.fill_diagonal(cosines, -np.inf)
        for first in sorted(map(senses.index, set(senses))):
            echo(f"\n          {senses[first]:9}{marked(contexts[first])}")
            for i in np.argsort(-cosines[first])[:NEAREST]:
                mark = MARKS[senses[i] == senses[first]]
                echo(f"{cosines[first, i]:7.2f} {mark} {senses[i]:9}{marked(contexts[i])}")
    show_score(found)
    show_blanks(nlp, lm, BLANKS)
    echo("\nYour own: " + style('python -m spacy elmo demo --text "…"', fg="green"))


def show_text(nlp: Language, lm: LanguageModel | None, text: str, found: Found) -> None:
    """The demo on the user's text: its blanks, and the words that it repeats."""
    has_blanks = show_blanks(nlp, lm, text)
    repeated = {word: contexts for word, contexts in found.items() if len(contexts) > 1}
    if repeated:
        show_groups(repeated)
    elif not has_blanks:
        echo("Nothing to show: use a word twice in different senses, or write ___ for a blank.")


def show_score(found: Found) -> None:
    """Print how often the nearest context has the same sense, over all contexts of all words."""
    total = sum(map(len, found.values()))
    title(
        "How often does the nearest sentence have the same meaning?",
        f"Each of {total} sentences is compared with the others of its word, {len(found)} words in "
        f"all. In layer 0, the static vectors, all are equally near, and one is picked at random. "
        f"The surroundings of a word are what is compared above.",
    )
    echo()
    words = list(found.values())
    layers = range(len(words[0][0].layers))
    rows = {f"layer {i}": [layer_cosines(contexts, i) for contexts in words] for i in layers}
    rows["surroundings"] = [similarities(contexts) for contexts in words]
    for name, cosines in rows.items():
        share = np.concatenate(list(map(accuracy, words, cosines))).mean()
        bar = style("█" * round(share * (WIDTH - 25)), fg="green")
        echo(f"  {name:15}{share:4.0%}  {bar}")


def show_groups(repeated: Found) -> None:
    """The contexts of repeated words, the first ones of many, grouped by similarity."""
    title(
        "Words that occur more than once",
        f"The {REPEATED} most frequent, with {CONTEXTS} occurrences at most, in similar groups.",
    )
    for word, every in list(repeated.items())[:REPEATED]:
        contexts = every[:CONTEXTS]
        label = divide(1 - similarities(contexts), MOST_SENSES)
        echo(f"\n  {style(word, bold=True)}, {len(every)} times")
        for number in range(label.max() + 1):
            if number:
                echo("  ─────")
            for i in np.flatnonzero(label == number):
                echo(f"  {marked(contexts[i])}")


def show_blanks(nlp: Language, lm: LanguageModel | None, text: str) -> bool:
    """The likeliest words for each blank of a text: from the left, from the right, from both.

    Returns:
        Whether it has any.
    """
    blanks = find_blanks(nlp, text)
    if not blanks:
        return False
    title(
        "Filling the blanks",
        "ELMo consists of two language models: one has read what is left of the blank, the other "
        "what is right of it. Both together: p(w|left) p(w|right) / p(w).",
    )
    if lm is None:
        msg.warn("These weights have no language-model head, so they cannot predict words.")
        return True
    for blank in blanks:
        echo(f"\n  {blank.left}{style(BLANK, fg='cyan', bold=True)}{blank.right}")
        for name, guesses in zip(WAYS.values(), lm.fill(blank.words, blank.place, 6), strict=True):
            echo(f"    {name:15}" + "  ".join(f"{word} {p:.0%}" for word, p in guesses))
    return True


def title(text: str, paragraph: str) -> None:
    """Print a heading across the screen, and a paragraph below it."""
    echo("\n" + style(f"── {text} ".ljust(WIDTH, "─"), bold=True))
    echo(textwrap.fill(paragraph, WIDTH, break_on_hyphens=False))


def marked(context: Context) -> str:
    """A sentence, with the word in brackets."""
    left, word, right = context.text
    return f"{left}{style(f'[{word}]', fg='cyan', bold=True)}{right}"
