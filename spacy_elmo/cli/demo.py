"""``python -m spacy elmo demo``: see contextual vectors and the language model at work."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from typer import echo, style  # which leave colours out where there is no terminal
from wasabi import msg

from . import options

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Token

    from ..lm.language_model import LanguageModel
    from ..senses.occurrences import Context

# Sentences with ambiguous words, written for the demo. A heading names a word and one of its
# senses; each sentence below it contains the word once, in exactly this form. All of them count in
# the demo's scores, and all were written before any model had read them: choosing among them by a
# model's vectors would be cheating.
SENTENCES = Path(__file__).with_name("demo_sentences.txt")
BLANKS = """\
Let's ___ to improvisation in this skit. The river ___ into the sea. She opened the ___ and looked \
outside. He was born in ___ and died in 1945."""
FACT = "The capital of France is ___."
SHOWN, NEAREST = ("play", "stick"), 2  # of the built-in words; sentences near one
HARDEST = 3  # words
WIDTH = 80  # columns
REPEATED, CONTEXTS = 6, 12  # words of the user's text; contexts of each
TIE = 1e-5  # cosines that differ by less are equal
MARKS = {True: style("✔", fg="green"), False: style("✘", fg="red")}

Found = dict[str, list["Context"]]  # by word


def demo_cli(
    text: Annotated[str | None, typer.Option("--text", "-t", help="Your own text; ___ marks a blank to fill")] = None,
    weights: options.BiLMName = "en_sm",
    lang: options.TokenizerLang = None,
    output: options.Picture = None,
) -> None:  # fmt: skip
    """
    See contextual vectors and the language model at work.

    Without a text of your own, the demo reads built-in English sentences with ambiguous words: it
    counts how often the nearest sentence has the same meaning, and fills blanks. With --text, it
    groups the contexts of words that occur more than once in your text, and fills its blanks (___).
    The picture shows the contexts of one word. Groups and the picture need the extra viz.
    """
    from ..lm.language_model import LanguageModel
    from ..senses.occurrences import MIN_CONTEXTS, group
    from ..text.readers import blank_pipeline
    from ..util.optional_imports import import_extra
    from ..viz import draw_senses
    from ..viz.figure import check_output
    from ..weights.find import find_weights

    with options.report_errors("Cannot show the demo"):
        check_output(output)
        if text is not None or output is not None:
            import_extra("sklearn", "viz", "contexts are grouped by scikit-learn", "elmo demo")
        chosen = find_weights(weights)
        nlp = blank_pipeline(chosen, lang, default="en")
        if text is None and nlp.lang != "en":
            raise ValueError(
                f"The built-in sentences are English, but the language of the weights '{weights}' "
                f"is '{nlp.lang}'. Give a text of your own with --text."
            )
        nlp.add_pipe("elmo", config={"store": ["layers"], "model": {"weights": weights}})
        lm = LanguageModel.load(chosen) if chosen.has_head() else None
        if text is None:
            tokens, found = built_in_contexts(nlp)
            scores = show_scores(tokens, found)
            for word in SHOWN:
                show_nearest(tokens[word], found[word])
            show_blanks(nlp, lm, BLANKS)
            show_limits(nlp, lm, scores)
            echo("\nYour own: " + style('python -m spacy elmo demo --text "…"', fg="green"))
        else:
            found = text_contexts(nlp, text)
            repeated = {word: contexts for word, contexts in found.items() if len(contexts) > 1}
            if not show_blanks(nlp, lm, text) and not repeated:
                echo("Nothing to show: use a word twice in different senses, or write ___.")
            if repeated:
                show_groups(nlp, repeated)
        if output is not None:
            word = SHOWN[0] if text is None else next(iter(found), "")
            if len(found.get(word, [])) < MIN_CONTEXTS:
                raise ValueError(
                    f"There is nothing to draw: no word but stop words occurs {MIN_CONTEXTS} times "
                    f"in the text."
                )
            draw_senses(group(word, found[word], nlp), output=output)
            msg.good(f"Drew the contexts of “{word}”", str(output.resolve()))


# What is read


def read_sentences(path: Path = SENTENCES) -> list[tuple[str, str, str]]:
    """The built-in sentences, or those of a file like theirs, as ``(word, sense, sentence)``."""
    found = []
    for block in path.read_text(encoding="utf-8").split("# ")[1:]:
        heading, *sentences = filter(None, block.splitlines())
        word, sense = heading.split(": ")
        found += [(word, sense, sentence) for sentence in sentences]
    return found


def built_in_contexts(nlp: Language) -> tuple[dict[str, list[Token]], Found]:
    """The words of the built-in sentences, and their contexts; the ``row`` of each is its sense.

    Args:
        nlp: a pipeline whose elmo component stores layers.
    """
    from ..senses.occurrences import make_context
    from ..text.segments import sentence_bounds

    rows, chosen, found = read_sentences(), defaultdict(list), defaultdict(list)
    docs = nlp.pipe(sentence for _, _, sentence in rows)
    for (word, sense, _), doc in zip(rows, docs, strict=True):
        token = next(token for token in doc if token.text == word)
        [inside] = sentence_bounds(doc, "doc").tokens
        chosen[word].append(token)
        found[word].append(make_context(doc, inside, token.i, sense))
    return chosen, found


def text_contexts(nlp: Language, text: str) -> Found:
    """The occurrences of its words in lower case, the most frequent
    ones first; stop words are left out.

    Args:
        nlp: a pipeline whose elmo component stores layers.
        text: of any length.
    """
    from ..senses.occurrences import make_context, split_sentences
    from ..text.segments import sentence_bounds
    from .find_blanks import one_line

    found = defaultdict(list)
    for doc in nlp.pipe(split_sentences(nlp.make_doc(one_line(text)))):
        [words] = sentence_bounds(doc).tokens
        for token in doc:
            if token.is_alpha and not token.is_stop and len(token) > 1:
                found[token.lower_].append(make_context(doc, words, token.i))
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def layer_cosines(contexts: Sequence[Context], layer: int) -> np.ndarray:
    """Cosines ``(n, n)`` of one layer."""
    from ..pipeline.similarity import unit

    vectors = unit(np.stack([context.layers[layer] for context in contexts]))
    return vectors @ vectors.T


def token_cosines(tokens: Sequence[Token]) -> np.ndarray:
    """Their ``similarity``, each to each, ``(n, n)``."""
    return np.array([[one.similarity(other) for other in tokens] for one in tokens])


def accuracy(contexts: Sequence[Context], similarity: np.ndarray) -> np.ndarray:
    """For each context, whether the most similar other one has the same sense, ``(n,)``.

    Where several are equally similar, the share of them with the same sense: the expected accuracy
    of a random choice.
    """
    others = np.where(np.eye(len(contexts)), -np.inf, similarity)
    nearest = others >= others.max(axis=1, keepdims=True) - TIE
    senses = np.array([context.row for context in contexts])
    return (nearest & (senses[:, None] == senses)).sum(axis=1) / nearest.sum(axis=1)


# What is printed


def show_scores(tokens: dict[str, list[Token]], found: Found) -> dict[str, np.ndarray]:
    """How often the nearest context has the same sense, over all contexts of all words.

    Returns:
        By word, whether each of its contexts has such a nearest one.
    """
    from ..senses.occurrences import similarities

    words = list(found.values())
    title(
        "How often does the nearest sentence have the same meaning?",
        f"A static vector is the same in every sentence. ELMo's depend on the sentence. Each of "
        f"{sum(map(len, words))} sentences is compared with the others of its word, {len(words)} "
        f"words in all. In layer 0, the static vectors, all are equally near, and one is picked at "
        f"random. `elmo senses` compares what surrounds the word.",
    )
    echo()
    layers = range(len(words[0][0].layers))
    rows = {f"layer {i}": [layer_cosines(contexts, i) for contexts in words] for i in layers}
    rows["similarity"] = list(map(token_cosines, tokens.values()))
    rows["elmo senses"] = list(map(similarities, words))
    for name, cosines in rows.items():
        share = np.concatenate(list(map(accuracy, words, cosines))).mean()
        bar = style("█" * round(share * (WIDTH - 25)), fg="green")
        echo(f"  {name:15}{share:4.0%}  {bar}")
    return dict(zip(found, map(accuracy, words, rows["elmo senses"]), strict=True))


def show_nearest(tokens: Sequence[Token], contexts: Sequence[Context]) -> None:
    """For a sentence of each sense, those in which the word is most similar."""
    cosines, senses = token_cosines(tokens), [context.row for context in contexts]
    np.fill_diagonal(cosines, np.nan)
    title(
        f"One word, several meanings: {tokens[0].text}",
        f"Below each sentence are those in which the word is most similar: its `token.similarity`, "
        f"a cosine. Two of these sentences have {np.nanmean(cosines):.2f} on average.",
    )
    for first in sorted(map(senses.index, set(senses))):
        echo(f"\n          {senses[first]:9}{marked(contexts[first])}")
        for i in np.argsort(-cosines[first])[:NEAREST]:
            mark = MARKS[senses[i] == senses[first]]
            echo(f"{cosines[first, i]:7.2f} {mark} {senses[i]:9}{marked(contexts[i])}")


def show_limits(nlp: Language, lm: LanguageModel | None, scores: dict[str, np.ndarray]) -> None:
    """The words whose senses are told apart worst, and a fact that the model does not know."""
    title(
        "Limits",
        "The words that `elmo senses` tells apart worst, and how many of their sentences are "
        "right. And a model of this size knows few facts.",
    )
    echo()
    for word in sorted(scores, key=lambda word: scores[word].mean())[:HARDEST]:
        echo(f"  {word:15}{scores[word].sum():.0f} of {len(scores[word])}")
    if lm is not None:
        fill_blanks(nlp, lm, FACT)


def show_groups(nlp: Language, repeated: Found) -> None:
    """The contexts of repeated words, the first ones of many, grouped by similarity."""
    from ..senses.occurrences import group

    title(
        "Words that occur more than once",
        f"The {REPEATED} most frequent, with {CONTEXTS} occurrences at most, in similar groups; "
        f"each has words of its sentences above it.",
    )
    for word, every in list(repeated.items())[:REPEATED]:
        echo(f"\n  {style(word, bold=True)}, {len(every)} times")
        for sense in group(word, every[:CONTEXTS], nlp).groups:
            echo(f"  ── {', '.join(sense.keywords)}")
            for context in sense.contexts:
                echo(f"  {marked(context)}")


def show_blanks(nlp: Language, lm: LanguageModel | None, text: str) -> bool:
    """The likeliest words for each blank of a text, if it has any.

    Returns:
        Whether it has.
    """
    from .find_blanks import find_blanks

    if not find_blanks(nlp, text):
        return False
    title(
        "Filling the blanks",
        "ELMo consists of two language models: one has read what is left of the blank, the other "
        "what is right of it. Both together: p(w|left) p(w|right) / p(w).",
    )
    if lm is None:
        msg.warn("These weights have no language-model head, so they cannot predict words.")
    else:
        fill_blanks(nlp, lm, text)
    return True


def fill_blanks(nlp: Language, lm: LanguageModel, text: str) -> None:
    """Print the likeliest words for each blank: from the left, from the right, from both."""
    from ..lm.language_model import BLANK
    from .find_blanks import find_blanks
    from .predict import WAYS

    for blank in find_blanks(nlp, text):
        echo(f"\n  {blank.left}{style(BLANK, fg='cyan', bold=True)}{blank.right}")
        for name, guesses in zip(WAYS.values(), lm.fill(blank.words, blank.place, 6), strict=True):
            echo(f"    {name:15}" + "  ".join(f"{word} {p:.0%}" for word, p in guesses))


def title(text: str, paragraph: str) -> None:
    """Print a heading across the screen, and a paragraph below it."""
    echo("\n" + style(f"── {text} ".ljust(WIDTH, "─"), bold=True))
    echo(textwrap.fill(paragraph, WIDTH, break_on_hyphens=False))


def marked(context: Context) -> str:
    """A sentence, with the word in brackets."""
    left, word, right = context.text
    return f"{left}{style(f'[{word}]', fg='cyan', bold=True)}{right}"
