"""``python -m spacy elmo demo``: see contextual vectors and the language model at work."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from typer import echo, style  # which leave colours out where there is no terminal
from wasabi import msg

from . import options

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

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
MAX_CHARACTERS = 100_000  # of the user's text
WIDTH = 80  # columns
SHOWN, NEAREST = 4, 3  # of the built-in words; sentences near one
REPEATED, CONTEXTS = 6, 12  # words of the user's text; contexts of each
ON_PAGE, CHARACTERS = 20, 14  # sentences; of one, on each side of the word
TIE = 1e-5  # cosines that differ by less are equal
MARKS = {True: style("✔", fg="green"), False: style("✘", fg="red")}

Found = dict[str, list["Context"]]  # by word


def demo_cli(
    text: Annotated[str | None, typer.Option("--text", "-t", help="Your own text; ___ marks a blank to fill")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A text file of your own: .txt (UTF-8) or .jsonl, either also .gz, .xz or .zst")] = None,
    weights: options.BiLMName = "en_sm",
    lang: options.TokenizerLang = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="HTML page to write, too: the senses of a word, its occurrences compared, surprisal", dir_okay=False)] = None,
) -> None:  # fmt: skip
    """
    See contextual vectors and the language model at work.

    Without a text of your own, the demo reads built-in English sentences with ambiguous words: it
    compares the vectors of a word in different sentences, and fills blanks. With --text or --file,
    it groups the contexts of words that occur more than once in your text, and fills its blanks
    (___). Groups and the page need the extra viz.
    """
    from ..lm.language_model import LanguageModel
    from ..text.readers import blank_pipeline
    from ..util.optional_imports import import_extra
    from ..viz.figure import check_output
    from ..weights.find import find_weights

    with options.report_errors("Cannot show the demo"):
        if output is not None and check_output(output).suffix.lower() != ".html":
            raise ValueError(f"The page is written to an .html file, not to '{output}'.")
        own = read_own(text, file)
        if own is not None or output is not None:
            import_extra("sklearn", "viz", "contexts are grouped by scikit-learn", "elmo demo")
        chosen = find_weights(weights)
        nlp = blank_pipeline(chosen, lang, default="en")
        if own is None and nlp.lang != "en":
            raise ValueError(
                f"The built-in sentences are English, but the language of the weights '{weights}' "
                f"is '{nlp.lang}'. Give a text of your own with --text or --file."
            )
        nlp.add_pipe("elmo", config={"store": ["layers"], "model": {"weights": weights}})
        lm = LanguageModel.load(chosen) if chosen.has_head() else None
        if lm is not None and output is not None:
            nlp.add_pipe("elmo_surprisal", config={"weights": weights})
        if own is None:
            docs, found = built_in_contexts(nlp)
            show_nearest(found)
            show_scores(found)
            show_blanks(nlp, lm, BLANKS)
            echo("\nYour own: " + style('python -m spacy elmo demo --text "…"', fg="green"))
        else:
            docs, found = text_contexts(nlp, own)
            repeated = {word: contexts for word, contexts in found.items() if len(contexts) > 1}
            if not show_blanks(nlp, lm, own) and not repeated:
                echo("Nothing to show: use a word twice in different senses, or write ___.")
            if repeated:
                show_groups(nlp, repeated)
        if output is not None:
            write_page(output, nlp, docs, found)
            msg.good("Pictures of it", str(output.resolve()))


def read_own(text: str | None, file: Path | None) -> str | None:
    """The user's text, None if there is none.

    Raises:
        ValueError: it is given twice, is empty, or cannot be read.
    """
    from ..text.texts import paragraphs_in

    if file is not None:
        if text is not None:
            raise ValueError("Give --text or --file, not both.")
        text = "\n".join(paragraphs_in(file))
    if text is not None and not text.strip():
        raise ValueError("The text is empty; give a sentence or more.")
    if text is not None and len(text) > MAX_CHARACTERS:
        msg.warn(f"Only the first {MAX_CHARACTERS:,} characters are read.")
    return text and text[:MAX_CHARACTERS]


# What is read


def read_sentences(path: Path = SENTENCES) -> list[tuple[str, str, str]]:
    """The built-in sentences, or those of a file like theirs, as ``(word, sense, sentence)``."""
    found = []
    for block in path.read_text(encoding="utf-8").split("# ")[1:]:
        heading, *sentences = filter(None, block.splitlines())
        word, sense = heading.split(": ")
        found += [(word, sense, sentence) for sentence in sentences]
    return found


def built_in_contexts(nlp: Language) -> tuple[list[Doc], Found]:
    """The built-in sentences, and the occurrences of their words; the ``row`` of each is its sense.

    Args:
        nlp: a pipeline whose elmo component stores layers.
    """
    from ..senses.occurrences import make_context
    from ..text.segments import sentence_bounds

    rows, found = read_sentences(), defaultdict(list)
    docs = list(nlp.pipe(sentence for _, _, sentence in rows))
    for (word, sense, _), doc in zip(rows, docs, strict=True):
        i = next(token.i for token in doc if token.text == word)
        [tokens] = sentence_bounds(doc, "doc").tokens
        found[word].append(make_context(doc, tokens, i, sense))
    return docs, found


def text_contexts(nlp: Language, text: str) -> tuple[list[Doc], Found]:
    """The sentences of a text, and the occurrences of its words in lower case, the most frequent
    ones first; stop words are left out.

    Args:
        nlp: a pipeline whose elmo component stores layers.
        text: of any length.
    """
    from ..senses.occurrences import make_context, split_sentences
    from ..text.segments import sentence_bounds
    from .find_blanks import one_line

    docs = list(nlp.pipe(split_sentences(nlp.make_doc(one_line(text)))))
    found = defaultdict(list)
    for doc in docs:
        [words] = sentence_bounds(doc).tokens
        for token in doc:
            if token.is_alpha and not token.is_stop and len(token) > 1:
                found[token.lower_].append(make_context(doc, words, token.i))
    return docs, dict(sorted(found.items(), key=lambda item: -len(item[1])))


def layer_cosines(contexts: Sequence[Context], layer: int) -> np.ndarray:
    """Cosines ``(n, n)`` of one layer."""
    from ..pipeline.similarity import unit

    vectors = unit(np.stack([context.layers[layer] for context in contexts]))
    return vectors @ vectors.T


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


def show_nearest(found: Found) -> None:
    """For a sentence of each sense, those in which the word's surroundings are most similar."""
    from ..senses.occurrences import similarities

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


def show_scores(found: Found) -> None:
    """How often the nearest context has the same sense, over all contexts of all words."""
    from ..senses.occurrences import similarities

    words = list(found.values())
    title(
        "How often does the nearest sentence have the same meaning?",
        f"Each of {sum(map(len, words))} sentences is compared with the others of its word, "
        f"{len(words)} words in all. In layer 0, the static vectors, all are equally near, and one "
        f"is picked at random. The surroundings of a word are what is compared above.",
    )
    echo()
    layers = range(len(words[0][0].layers))
    rows = {f"layer {i}": [layer_cosines(contexts, i) for contexts in words] for i in layers}
    rows["surroundings"] = [similarities(contexts) for contexts in words]
    for name, cosines in rows.items():
        share = np.concatenate(list(map(accuracy, words, cosines))).mean()
        bar = style("█" * round(share * (WIDTH - 25)), fg="green")
        echo(f"  {name:15}{share:4.0%}  {bar}")


def show_groups(nlp: Language, repeated: Found) -> None:
    """The contexts of repeated words, the first ones of many, grouped by similarity."""
    from ..senses.occurrences import group

    title(
        "Words that occur more than once",
        f"The {REPEATED} most frequent, with {CONTEXTS} occurrences at most, in similar groups.",
    )
    for word, every in list(repeated.items())[:REPEATED]:
        echo(f"\n  {style(word, bold=True)}, {len(every)} times")
        for number, sense in enumerate(group(word, every[:CONTEXTS], nlp).groups):
            if number:
                echo("  ─────")
            for context in sense.contexts:
                echo(f"  {marked(context)}")


def show_blanks(nlp: Language, lm: LanguageModel | None, text: str) -> bool:
    """The likeliest words for each blank of a text: from the left, from the right, from both.

    Returns:
        Whether it has any.
    """
    from ..lm.language_model import BLANK
    from .find_blanks import find_blanks
    from .predict import WAYS

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


# What is drawn


def write_page(output: Path, nlp: Language, docs: Sequence[Doc], found: Found) -> None:
    """Draw the senses of the first word, if it has enough occurrences, and the surprisal of words.

    Args:
        output: the page to write.
        nlp: the pipeline that has read the Docs, with a component elmo_surprisal or without.
        docs: sentences.
        found: the occurrences of words in them.

    Raises:
        ValueError: there is nothing to draw.
    """
    from ..senses.clusters import MOST_ITEMS
    from ..senses.occurrences import MIN_CONTEXTS, group, similarities
    from ..util.files import write_text
    from ..viz.figure import cut, cut_start
    from ..viz.heat_maps import draw_matrix
    from ..viz.html import html_page
    from ..viz.marked_surprisal import mark_surprisal
    from ..viz.sense_map import draw_senses

    parts = []
    word, contexts = next(iter(found.items()), ("", []))
    if len(contexts) >= MIN_CONTEXTS:
        senses = group(word, contexts[:MOST_ITEMS], nlp)
        parts.append(draw_senses(senses)._repr_html_())
        is_known = contexts[0].row is not None
        if not is_known:
            contexts = [context for each in senses.groups for context in each.contexts]
        contexts = contexts[:ON_PAGE]
        cosines, lines = similarities(contexts), []
        for context in contexts:
            left, middle, right = context.text
            line = f"{cut_start(left, CHARACTERS)}[{middle}]{cut(right, CHARACTERS)}"
            lines.append(f"{context.row}: {line}" if is_known else line)
        parts.append(draw_matrix(cosines, lines, f"Occurrences of “{word}”")._repr_html_())
        if is_known:
            parts.append(
                f"<p>The sentences are in the order of the word's senses, which ELMo was not told: "
                f"for {accuracy(contexts, cosines).sum():.0f} of {len(contexts)}, the most similar "
                f"other one has the same sense.</p>"
            )
    with suppress(ValueError):  # no word has a surprisal
        parts.append(mark_surprisal(docs[:ON_PAGE]))
    if not parts:
        raise ValueError(
            f"There is nothing to draw: no word but stop words occurs {MIN_CONTEXTS} times in the "
            f"text, and none has a surprisal, for which a language-model head must know it."
        )
    write_text(output, html_page("ELMo at work", *parts))
