"""The demo on its own sentences: nearest contexts, a score over all of them, and blanks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from spacy.language import Language

from ..lm.language_model import BLANK, Guesses, LanguageModel
from .blanks import Blank, find_blanks, prepare
from .demo_contexts import Context, chance, cosines, hits, labelled, vectors
from .demo_screen import Screen, sense_colour
from .demo_sentences import NOUNS, read_sentences

WORDS_SHOWN = 4
BLANKS = (
    "Let's ___ to improvisation in this skit.",
    "The river ___ into the sea.",
    "She opened the ___ and looked outside.",
    "He was born in ___ and died in 1945.",
)
NO_HEAD = (
    "These weights come without the language model's head (head.safetensors and vocab.txt), so "
    "they cannot guess words."
)


def show_tour(
    screen: Screen, nlp: Language, lm: LanguageModel | None, n: int, all_words: bool
) -> None:
    """The whole demo.

    Args:
        screen: where to.
        nlp: a pipeline whose elmo component stores layers.
        lm: None if the weights have no head.
        n: nearest contexts to show.
        all_words: show all words, not the first few.
    """
    sentences = read_sentences()
    found = labelled(nlp, sentences)
    screen.title("One word, several meanings")
    screen.paragraph(
        "A static vector (ELMo's layer 0, made of a word's characters alone) is the same wherever "
        "the word stands: all its contexts are equally near, cosine 1. ELMo's upper layers read "
        "the sentence. Below each sentence are the nearest others by the top layer, and the "
        "farthest (…), with both cosines."
    )
    screen.line()
    screen.line(screen.dim("  ELMo static"))
    shown = list(found) if all_words else list(found)[:WORDS_SHOWN]
    for word in shown:
        show_word(screen, found[word], n)
    if len(shown) < len(found):
        screen.line()
        screen.line(screen.dim(f"The first {len(shown)} of {len(found)} words; --all shows all."))
    show_score(screen, found)
    screen.title("Filling a blank")
    if lm is None:
        screen.msg.warn(NO_HEAD)
    else:
        screen.paragraph(
            "ELMo is made of two language models: one has read what is left of the blank, one what "
            "is right of it. Together: p(w|left) p(w|right) / p(w)."
        )
        for text in BLANKS:
            [blank] = find_blanks(nlp.make_doc(prepare(text)))
            screen.line()
            screen.line("  ", blank.left, screen.mark(BLANK), blank.right)
            show_guesses(screen, lm, blank)
    screen.line()
    screen.line("Your own: ", screen.paint('python -m spacy elmo demo --text "…"', "green"))


def show_word(screen: Screen, contexts: list[Context], n: int) -> None:
    """For the first sentence of each sense of a word, the nearest other ones and the farthest."""
    top = len(contexts[0].layers) - 1
    senses = list(dict.fromkeys(c.sense for c in contexts))
    similarity = cosines(vectors(contexts, top), vectors(contexts, top))
    static = cosines(vectors(contexts, 0), vectors(contexts, 0))
    column = max(len(sense) for sense in senses) + 2
    for sense in senses:
        query = next(i for i, c in enumerate(contexts) if c.sense == sense)
        left, word, right = contexts[query].text
        order = [i for i in np.argsort(-similarity[query]).tolist() if i != query]
        colour = sense_colour(senses, sense)
        screen.line()
        screen.line("▸ ", left, screen.mark(word, colour), right, "  ", screen.dim(f"({sense})"))
        for i in [*order[:n], *order[n:][-1:]]:
            if i == order[-1] and len(order) > n:
                mark = screen.dim("…")
            elif contexts[i].sense == sense:
                mark = screen.paint("✔", "green")
            else:
                mark = screen.paint("✘", "red")
            head = f"{similarity[query, i]:6.2f} " + screen.dim(f"{static[query, i]:6.2f}  ")
            colour = sense_colour(senses, contexts[i].sense)
            label = screen.paint(contexts[i].sense.ljust(column), colour)
            text = screen.keyword(contexts[i].text, screen.width - 17 - column, colour)
            screen.line(head, mark, " ", label, text)


def show_score(screen: Screen, found: dict[str, list[Context]]) -> None:
    """How often the nearest context has the same sense, over all occurrences of all words."""
    top = len(next(iter(found.values()))[0].layers) - 1
    blind, total = _share(found, chance)
    screen.title("How often does the nearest context have the same meaning?")
    screen.paragraph(
        f"Each of the {total} occurrences of all {len(found)} words, compared with the others of "
        f"its word. Where all are equally near, all one can do is pick one blindly."
    )
    screen.line()
    rows: list[tuple[str, int | None]] = [("static vector (layer 0)", 0)]
    rows += [(f"ELMo layer {layer}", layer) for layer in range(1, top + 1)]
    rows += [("even mix of all (doc.tensor)", None)]
    column = max(len(name) for name, _ in rows) + 2
    room = screen.width - column - 10
    for name, layer in [("picked blindly", -1), *rows]:
        share = blind if layer == -1 else _share(found, partial(hits, layer=layer))[0]
        bar = screen.bar(share, room)
        painted = screen.dim(bar) if layer in (-1, 0) else screen.paint(bar, "green")
        screen.line("  ", name.ljust(column), f"{share:4.0%}  ", painted)
    share, _ = _share(found, partial(hits, layer=top))
    error = math.sqrt(share * (1 - share) / total)
    screen.line()
    screen.paragraph(
        f"With so few occurrences the standard error is about {100 * error:.0f} points. By word "
        f"for layer {top}, in brackets what picking blindly gives. Where all senses are nouns, only "
        f"the topic tells them apart; those of the others also differ in part of speech."
    )
    kinds = ("all senses are nouns", NOUNS), ("others", tuple(w for w in found if w not in NOUNS))
    for name, words in kinds:
        part = {word: found[word] for word in words}
        share, _ = _share(part, partial(hits, layer=top))
        blind, _ = _share(part, chance)
        screen.line()
        screen.line(f"  {name}: {share:.0%} ({blind:.0%})")
        pieces = []
        for word, contexts in part.items():
            n_hits, by_chance = hits(contexts, top).sum(), chance(contexts).sum()
            plain = f"{word} {n_hits:.0f}/{len(contexts)} ({by_chance:.1f})".ljust(19)
            pieces.append((plain, screen.paint(plain, "green" if n_hits > by_chance else "red")))
        screen.items("    ", pieces)


def _share(
    found: dict[str, list[Context]], measure: Callable[[list[Context]], np.ndarray]
) -> tuple[float, int]:
    """The mean of a measure over all occurrences of all words, and their number."""
    values = np.concatenate([measure(contexts) for contexts in found.values()])
    return float(values.mean()), len(values)


def show_guesses(screen: Screen, lm: LanguageModel, blank: Blank) -> None:
    """The likeliest words for a blank: from the left, from the right, from both."""
    filled = lm.fill(blank.words, blank.place, 12)
    names = ("left to right", "right to left", "both")
    for name, guesses in zip(names, filled, strict=True):
        both = name == "both"
        screen.line("    ", screen.dim(name.ljust(15)), _guessed(screen, guesses, both))


def _guessed(screen: Screen, guesses: Guesses, bold: bool) -> str:
    """As many guesses as fit in the rest of a line."""
    room, parts = screen.width - 19, []
    for word, p in guesses:
        plain = f"{word} {p:.0%}" if p >= 0.005 else word
        room -= len(plain) + 2
        if room < 0:
            break
        percent = screen.dim(plain[len(word) :])
        parts.append((screen.paint(word, "cyan", bold=True) if bold else word) + percent)
    return "  ".join(parts)
