"""``python -m spacy elmo demo``: shows contextual vectors and the language model at work."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from spacy.language import Language
from spacy.tokens import Token
from typer import echo, style  # which leave colours out where there is no terminal
from wasabi import msg

from . import options

if TYPE_CHECKING:
    from ..lm.language_model import LanguageModel

# Sentences with ambiguous words, written for the demo. A heading names a word and one of its
# senses; each sentence below it contains the word once, in exactly this form. All sentences count in
# the demo's scores. They were written before any model had read them, and none was chosen by a
# model's vectors.
SENTENCES = Path(__file__).with_name("demo_sentences.txt")
BLANKS = """\
Let's ___ to improvisation in this skit. The river ___ into the sea. She opened the ___ and looked \
outside. He was born in ___ and died in 1945. The capital of France is ___."""
SHOWN, NEAREST = ("play", "stick"), 2  # words to show; nearest sentences for each
HARDEST = 3  # number of words to name under "Limits"
GUESSES = 5  # words for a blank
WIDTH = 80  # columns of the output
TIE = 1e-5  # cosines that differ by less count as equal


@options.app.command("demo")
def demo_cli(
    weights: options.BiLMName = "en_sm",
) -> None:
    """
    Show contextual vectors and the language model at work.

    The demo reads English sentences with ambiguous words: it counts how often the nearest sentence
    has the same meaning, and fills blanks. For texts of your own, see `elmo predict` and
    `elmo senses`.
    """
    from ..lm.language_model import LanguageModel
    from ..text.readers import blank_pipeline
    from ..weights.find import find_weights

    with options.report_errors("Cannot show the demo"):
        chosen = find_weights(weights)
        nlp = blank_pipeline(chosen, default="en")
        if nlp.lang != "en":
            raise ValueError(
                f"The demo's sentences are English, but the language of '{weights}' is "
                f"'{nlp.lang}'. See `elmo predict` and `elmo senses` for texts of your own."
            )
        nlp.add_pipe("elmo", config={"model": {"weights": weights}})
        show(nlp, LanguageModel.load(chosen) if chosen.has_head() else None)


def read_sentences(path: Path = SENTENCES) -> list[tuple[str, str, str]]:
    """Read a file of sentences, by default the demo's, as tuples ``(word, sense, sentence)``."""
    rows = []
    for block in path.read_text(encoding="utf-8").split("# ")[1:]:
        heading, *sentences = filter(None, block.splitlines())
        word, sense = heading.split(": ")
        rows += [(word, sense, sentence) for sentence in sentences]
    return rows


def show(nlp: Language, lm: LanguageModel | None) -> None:
    """Show the accuracy on the sentences, some of them, filled blanks, and limits."""
    senses, tokens = defaultdict[str, list[str]](list), defaultdict[str, list[Token]](list)
    rows = read_sentences()
    for (word, sense, _), doc in zip(rows, nlp.pipe(text for *_, text in rows), strict=True):
        senses[word].append(sense)
        tokens[word].append(next(token for token in doc if token.text == word))
    cosines = {
        word: np.array([[one.similarity(other) for other in every] for one in every])
        for word, every in tokens.items()
    }
    right = {word: accuracy(senses[word], cosines[word]) for word in senses}
    chance = {word: accuracy(senses[word], np.ones_like(cosines[word])) for word in senses}
    title(
        "How often does the nearest sentence have the same meaning?",
        f"Each of {len(rows)} sentences is compared with the others of its word, {len(senses)} "
        f"words in all, by the word's `token.similarity`, a cosine. A static vector is the same in "
        f"every sentence, so all are equally near, and one is picked at random.",
    )
    for name, words in (("static vectors", chance), ("ELMo", right)):
        share = np.concatenate(list(words.values())).mean()
        echo(f"\n  {name:15}{share:4.0%}  " + style("█" * round(share * (WIDTH - 25)), fg="green"))
    for word in SHOWN:
        show_nearest(senses[word], tokens[word], cosines[word])
    show_blanks(nlp, lm)
    worst = sorted((shares.mean(), word) for word, shares in right.items())[:HARDEST]
    title(
        "Limits",
        f"A model of this size knows few facts, as the last blank shows. The words whose meanings "
        f"it tells apart worst: {', '.join(f'{word} ({share:.0%})' for share, word in worst)}. "
        f"`elmo predict` fills the blanks of a text of yours, and `elmo senses` groups its contexts.",
    )


def accuracy(senses: Sequence[str], similarity: np.ndarray) -> np.ndarray:
    """Whether the most similar other context has the same sense, for each context, ``(n,)``.

    If several are equally similar, this is the share of them with the same sense: the expected
    accuracy of a random choice.
    """
    others = np.where(np.eye(len(senses)), -np.inf, similarity)
    nearest = others >= others.max(axis=1, keepdims=True) - TIE
    return (nearest & np.equal.outer(senses, senses)).sum(axis=1) / nearest.sum(axis=1)


def show_nearest(senses: Sequence[str], tokens: Sequence[Token], cosines: np.ndarray) -> None:
    """Show a sentence for each sense, and the sentences in which the word is most similar."""
    title(
        f"One word, several meanings: {tokens[0].text}",
        "Below each sentence are those in which the word is most similar, with the cosines.",
    )
    texts = [marked(*token.doc.text.partition(token.text)) for token in tokens]
    for first in map(senses.index, dict.fromkeys(senses)):
        echo(f"\n          {senses[first]:9}{texts[first]}")
        for i in np.argsort(-cosines[first])[1 : NEAREST + 1]:  # itself comes first
            mark = style("✔", fg="green") if senses[i] == senses[first] else style("✘", fg="red")
            echo(f"{cosines[first, i]:7.2f} {mark} {senses[i]:9}{texts[i]}")


def show_blanks(nlp: Language, lm: LanguageModel | None) -> None:
    """Show the likeliest words for each blank: by each language model, and by both."""
    from .find_blanks import find_blanks, print_filled

    if lm is None:
        msg.warn("These weights have no language-model head, so they cannot predict words.")
        return
    title(
        "Filling the blanks",
        "ELMo consists of two language models: one has read what is left of the blank, the "
        "other what is right of it. Both together: p(w|left) p(w|right) / p(w).",
    )
    for blank in find_blanks(nlp, BLANKS):
        print_filled(blank, lm.fill(blank.words, blank.place, GUESSES))


def title(text: str, paragraph: str) -> None:
    """Print a heading, and a paragraph below it."""
    echo("\n" + style(f"── {text} ".ljust(WIDTH, "─"), bold=True))
    echo(textwrap.fill(paragraph, WIDTH, break_on_hyphens=False))


def marked(left: str, word: str, right: str) -> str:
    """A sentence, with the word in brackets."""
    return f"{left}{style(f'[{word}]', fg='cyan', bold=True)}{right}"
