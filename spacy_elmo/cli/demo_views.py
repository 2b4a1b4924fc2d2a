"""What the demo shows: nearest contexts, a score, groups of contexts, blanks and surprises."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..lm.language_model import BLANK, LanguageModel
from ..pipeline.segments import sentence_bounds
from .demo_contexts import (
    NOUNS,
    Context,
    accuracy,
    built_in_contexts,
    cosines,
    link_nearest,
    make_context,
    read_sentences,
)  # fmt: skip
from .demo_screen import COLOURS, Screen, clip
from .find_blanks import Blank, around, find_blanks, prepare

WORDS_SHOWN = 4  # of the built-in ones
REPEATED_SHOWN = 6
CONTEXTS_SHOWN = 12  # of one word
SURPRISES_SHOWN = 5
BLANKS = """\
Let's ___ to improvisation in this skit. The river ___ into the sea. She opened the ___ and looked \
outside. He was born in ___ and died in 1945."""


def show_built_in(
    screen: Screen, nlp: Language, lm: LanguageModel | None, n: int, all_words: bool
) -> None:
    """The demo on its own sentences.

    Args:
        screen: where to print.
        nlp: a pipeline whose elmo component stores layers.
        lm: None if the weights have no head.
        n: number of nearest contexts to show.
        all_words: show all words, not just the first few.
    """
    words = list(dict.fromkeys(word for word, _, _ in read_sentences()))
    found = built_in_contexts(nlp, words)
    screen.title(
        "One word, several meanings",
        "A static vector (ELMo's layer 0, computed from a word's characters alone) is the same in "
        "every sentence: all contexts of a word are equally near, cosine 1. ELMo's upper layers "
        "read the sentence. Below each sentence are its nearest neighbours by the top layer, and "
        "the farthest context (…), with both cosines.",
    )
    for word in words if all_words else words[:WORDS_SHOWN]:
        for sense in dict.fromkeys(c.sense for c in found[word]):
            query = next(c for c in found[word] if c.sense == sense)
            show_nearest(screen, query, [c for c in found[word] if c is not query], n)
    if not all_words:
        screen.note(f"The first {WORDS_SHOWN} of {len(words)} words; --all shows all.")
    show_score(screen, found)
    show_blanks(screen, lm, find_blanks(nlp.make_doc(prepare(BLANKS))))
    screen.line()
    screen.line("Your own: ", screen.paint('python -m spacy elmo demo --text "…"', "green"))


def show_text(screen: Screen, nlp: Language, lm: LanguageModel | None, text: str, n: int) -> None:
    """The demo on the user's text: blanks, repeated words, words of the built-in sentences; if
    there are no blanks and no repeated words, the least expected ones.

    Arguments: see `show_built_in`; ``text`` is not empty.
    """
    doc = nlp(prepare(text))
    if blanks := find_blanks(doc):
        show_blanks(screen, lm, blanks)
    words = defaultdict(list)
    for token in doc:
        if token.is_alpha and not token.is_stop and len(token) > 1:
            words[token.lower_].append(make_context(doc, token.i))
    if repeated := {word: contexts for word, contexts in words.items() if len(contexts) > 1}:
        show_groups(screen, repeated)
    single = words.keys() - repeated.keys()
    known = built_in_contexts(nlp, single) if nlp.lang == "en" else {}
    if known:
        screen.title("Nearest contexts among the built-in sentences")
    for word, contexts in known.items():
        show_nearest(screen, words[word][0], contexts, n)
    if not (blanks or repeated):
        show_surprises(screen, lm, doc)
    if not (blanks or repeated or known):
        screen.note("To see more, use a word twice in different senses, or write ___.")


def show_nearest(screen: Screen, query: Context, others: list[Context], n: int) -> None:
    """A context, and the nearest and the farthest others of its word."""
    cosine, static = (cosines([query], others, [layer])[0] for layer in (-1, 0))
    senses = sorted({c.sense for c in others})
    column = max(map(len, senses)) + 2
    colour = dict(zip(senses, COLOURS, strict=False))
    room = screen.width - 17 - column
    screen.line()
    screen.line(screen.dim("  ELMo static ▸ "), f"{query.sense:{column}} ",
                screen.keyword(query.text, room, colour.get(query.sense, "green")))  # fmt: skip
    order = np.argsort(-cosine).tolist()
    for i in [*order[:n], *order[n:][-1:]]:
        found, fg = others[i].sense, colour[others[i].sense]
        mark = screen.check(found == query.sense) if query.sense else " "
        if i == order[-1] and len(order) > n:
            mark = screen.dim("…")
        head = f"{cosine[i]:6.2f} " + screen.dim(f"{static[i]:6.2f}  ")
        sense = screen.paint(found.ljust(column), fg)
        screen.line(head, mark, " ", sense, screen.keyword(others[i].text, room, fg))


def show_score(screen: Screen, found: dict[str, list[Context]]) -> None:
    """How often the nearest context has the same sense, over all contexts of all words."""
    total = sum(map(len, found.values()))
    top = len(next(iter(found.values()))[0].layers) - 1
    screen.title(
        "How often does the nearest context have the same meaning?",
        f"Each of the {total} occurrences of all {len(found)} words is compared with the others of "
        f"its word. Where all are equally near, one is picked at random.",
    )
    screen.line()
    ways = {
        "picked at random": [],
        "static vector (layer 0)": [0],
        **{f"ELMo layer {layer}": [layer] for layer in range(1, top + 1)},
        "mean of all (doc.tensor)": list(range(top + 1)),
    }
    column = max(map(len, ways)) + 2
    for name, layers in ways.items():
        share = score(found, layers)
        bar = "█" * round(share * (screen.width - column - 10))
        bar = screen.paint(bar, "green" if any(layers) else "grey")
        screen.line("  ", name.ljust(column), f"{share:4.0%}  ", bar)
    share = score(found, [top])
    error = 100 * math.sqrt(share * (1 - share) / total)
    screen.line()
    screen.paragraph(
        f"With so few occurrences the standard error is about {error:.0f} points. Below, layer {top} "
        f"by word, with chance in brackets. Where all senses are nouns, only the topic tells them "
        f"apart; the others also differ in part of speech."
    )
    for name, nouns in (("all senses are nouns", True), ("others", False)):
        part = {word: contexts for word, contexts in found.items() if (word in NOUNS) == nouns}
        screen.line()
        screen.line(f"  {name}: {score(part, [top]):.0%} ({score(part, []):.0%})")
        cells = []
        for word, contexts in part.items():
            n_right, by_chance = (accuracy(contexts, layers).sum() for layers in ([top], []))
            cell = f"{word} {n_right:.0f}/{len(contexts)} ({by_chance:.1f})".ljust(21)
            cells.append(screen.paint(cell, "green" if n_right > by_chance else "red"))
        per_line = (screen.width - 4) // 21
        for i in range(0, len(cells), per_line):
            screen.line("    ", *cells[i : i + per_line])


def score(found: dict[str, list[Context]], layers: list[int]) -> float:
    """The mean `accuracy` of all contexts of some words."""
    return float(np.concatenate([accuracy(c, layers) for c in found.values()]).mean())


def show_groups(screen: Screen, repeated: dict[str, list[Context]]) -> None:
    """The contexts of repeated words, grouped by similarity.

    Words of the built-in sentences come first, names last, frequent words before rare ones.
    """
    screen.title(
        "Words that occur more than once",
        "Each occurrence with the number of its nearest other one and their cosine by ELMo's top "
        "layer; their static vectors are (nearly) the same. Linked occurrences form a group.",
    )
    ambiguous = {word for word, _, _ in read_sentences()}

    def rank(word: str) -> tuple[bool, bool, int]:
        n_titles = sum(c.text[1].istitle() for c in repeated[word])
        return word not in ambiguous, 2 * n_titles > len(repeated[word]), -len(repeated[word])

    chosen = sorted(repeated, key=rank)[:REPEATED_SHOWN]
    for word in chosen:
        contexts, count = repeated[word][:CONTEXTS_SHOWN], len(repeated[word])
        similarity = cosines(contexts, contexts, [-1])
        nearest, groups = link_nearest(similarity)
        times = f"{count} times" if count == len(contexts) else f"first {len(contexts)} of {count}"
        screen.line()
        screen.line("  ", screen.paint(word, bold=True), screen.dim(f", {times}"))
        for number, members in enumerate(groups):
            if number:
                screen.line(screen.dim("  ─────"))
            for i in members:
                j = int(nearest[i])
                head = f"  {i + 1:2} " + screen.dim(f"→ {j + 1:2} {similarity[i, j]:5.2f}  ")
                fg = COLOURS[number % len(COLOURS)]
                screen.line(head, screen.keyword(contexts[i].text, screen.width - 17, fg))
    if len(chosen) < len(repeated):
        screen.note(f"{len(chosen)} of {len(repeated)} repeated words are shown.")


def show_blanks(screen: Screen, lm: LanguageModel | None, blanks: list[Blank]) -> None:
    """The likeliest words for each blank: from the left, from the right, from both."""
    screen.title("Filling the blank" if len(blanks) == 1 else "Filling the blanks")
    if lm is None:
        warn_no_head(screen)
        return
    screen.paragraph(
        "ELMo consists of two language models: one has read what is left of the blank, the other "
        "what is right of it. Both together: p(w|left) p(w|right) / p(w)."
    )
    for blank in blanks:
        screen.line()
        screen.line(
            "  ", screen.keyword((blank.left, BLANK, blank.right), screen.width - 4).strip()
        )
        filled = lm.fill(blank.words, blank.place, 12)
        for name, guesses in zip(("left to right", "right to left", "both"), filled, strict=True):
            words = [f"{word} {p:.0%}" if p >= 0.005 else word for word, p in guesses]
            while sum(map(len, words)) + 2 * len(words) > screen.width - 17:
                words.pop()
            fg = "cyan" if name == "both" else None
            screen.line("    ", screen.dim(name.ljust(15)), screen.paint("  ".join(words), fg))


def show_surprises(screen: Screen, lm: LanguageModel | None, doc: Doc) -> None:
    """The words that the language model expects least."""
    if lm is None:
        warn_no_head(screen)
        return
    title = "What surprises the language model most"
    tokens, bounds = sentence_bounds(doc)
    found = [
        (surprise, tokens[start + surprise.position])
        for start, end in bounds
        for surprise in lm.surprises([doc[int(i)].text for i in tokens[start:end]])
    ]
    found = [(surprise, int(i)) for surprise, i in found if not doc[int(i)].is_punct]
    if not found:
        screen.title(title, "None of the words is in its vocabulary.")
        return
    screen.title(
        title,
        "The words least expected given the rest of their sentence, in bits, and what was expected "
        "instead. Words outside the vocabulary are left out.",
    )
    room = screen.width - 34
    screen.line()
    screen.line(screen.dim(f"   bits  {'':{room}}  expected"))
    for surprise, i in sorted(found, key=lambda pair: -pair[0].bits)[:SURPRISES_SHOWN]:
        text = screen.keyword(around(doc, i, 0, len(doc)), room, "yellow")
        guesses = clip("  ".join(word for word, _ in surprise.guesses), 23)
        screen.line(f"{surprise.bits:7.1f}  ", text, "  ", screen.dim(guesses))


def warn_no_head(screen: Screen) -> None:
    screen.msg.warn(
        "These weights have no language-model head (head.safetensors and vocab.txt), so they cannot "
        "predict words."
    )
