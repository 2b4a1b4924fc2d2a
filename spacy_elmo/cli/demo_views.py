"""What the demo shows: nearest contexts, a score, groups of contexts, blanks and surprises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..clusters import divide
from ..lm.language_model import BLANK, LanguageModel
from ..pipeline.segments import sentence_bounds
from ..senses import MOST_SENSES, Context, similarities
from .demo_contexts import (
    NOUNS,
    accuracy,
    built_in_contexts,
    contexts_by_word,
    layer_cosines,
    read_sentences,
)  # fmt: skip
from .demo_screen import COLOURS, Screen, clip
from .find_blanks import Blank, around, find_blanks, prepare
from .predict import WAYS

WORDS_SHOWN = 4  # of the built-in ones
REPEATED_SHOWN = 6
CONTEXTS_SHOWN = 12  # of one word
SURPRISES_SHOWN = 5
BLANKS = """\
Let's ___ to improvisation in this skit. The river ___ into the sea. She opened the ___ and looked \
outside. He was born in ___ and died in 1945."""
Found = dict[str, list[Context]]  # by word


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
        "read the sentence. Below each sentence are the nearest contexts by what surrounds the "
        "word, and the farthest one (…), with both cosines; ELMo's is above 0 where two contexts "
        "have more in common than any two of the word.",
    )
    for word in words if all_words else words[:WORDS_SHOWN]:
        senses = [context.row for context in found[word]]
        for sense in dict.fromkeys(senses):
            show_nearest(screen, found[word], senses.index(sense), n)
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
    words = contexts_by_word([doc])
    if repeated := {word: contexts for word, contexts in words.items() if len(contexts) > 1}:
        show_groups(screen, repeated)
    single = words.keys() - repeated.keys()
    known = built_in_contexts(nlp, single) if nlp.lang == "en" else {}
    if known:
        screen.title("Nearest contexts among the built-in sentences")
    for word, contexts in known.items():
        show_nearest(screen, [words[word][0], *contexts], 0, n)
    if not (blanks or repeated):
        show_surprises(screen, lm, doc)
    if not (blanks or repeated or known):
        screen.note("To see more, use a word twice in different senses, or write ___.")


def show_nearest(screen: Screen, contexts: Sequence[Context], query: int, n: int) -> None:
    """One of a word's contexts, and the nearest and the farthest others."""
    cosine, static = similarities(contexts)[query], layer_cosines(contexts, [0])[query]
    order = [i for i in np.argsort(-cosine).tolist() if i != query]
    own = contexts[query].row or ""
    senses = sorted({contexts[i].row for i in order})
    colour = dict(zip(senses, COLOURS, strict=False))
    column = max(map(len, senses)) + 2
    room = screen.width - 17 - column
    screen.line()
    screen.line(screen.dim("  ELMo static ▸ "), f"{own:{column}} ",
                screen.keyword(contexts[query].text, room, colour.get(own, "green")))  # fmt: skip
    for i in [*order[:n], *order[n:][-1:]]:
        found, fg = contexts[i].row, colour[contexts[i].row]
        mark = screen.check(found == own) if own else " "
        if i == order[-1] and len(order) > n:
            mark = screen.dim("…")
        head = f"{cosine[i]:6.2f} " + screen.dim(f"{static[i]:6.2f}  ")
        sense = screen.paint(found.ljust(column), fg)
        screen.line(head, mark, " ", sense, screen.keyword(contexts[i].text, room, fg))


def show_score(screen: Screen, found: Found) -> None:
    """How often the nearest context has the same sense, over all contexts of all words."""
    total = sum(map(len, found.values()))
    screen.title(
        "How often does the nearest context have the same meaning?",
        f"Each of the {total} occurrences of all {len(found)} words is compared with the others of "
        f"its word. Where all are equally near, one is picked at random.",
    )
    screen.line()
    n_layers = len(next(iter(found.values()))[0].layers)
    compared: dict[str, list[int]] = {
        "picked at random": [],
        "static vector (layer 0)": [0],
        **{f"ELMo layer {layer}": [layer] for layer in range(1, n_layers)},
        "mean of all (doc.tensor)": list(range(n_layers)),
    }
    ways = {
        name: score(found, partial(layer_cosines, layers=layers))
        for name, layers in compared.items()
    }
    ways["surroundings"] = score(found, similarities)
    column = max(map(len, ways)) + 2
    for name, by_word in ways.items():
        share = mean(by_word)
        bar = "█" * round(share * (screen.width - column - 10))
        is_static = name in list(ways)[:2]
        bar = screen.paint(bar, "grey" if is_static else "green")
        screen.line("  ", name.ljust(column), f"{share:4.0%}  ", bar)
    chance, *_, best = ways.values()
    error = 100 * math.sqrt(mean(best) * (1 - mean(best)) / total)
    screen.line()
    screen.paragraph(
        f"The last line is what the neighbours above, `elmo neighbors` and `elmo senses` compare: the "
        f"context of the word, the other words, and the topic of the sentence. With so few "
        f"occurrences the standard error is about {error:.0f} points. Below is the last line by "
        f"word, with chance in brackets. Where all senses are nouns, only the topic tells them "
        f"apart; the others also differ in part of speech."
    )
    for name, nouns in (("all senses are nouns", True), ("others", False)):
        part = [word for word in found if (word in NOUNS) == nouns]
        shares = (mean({word: way[word] for word in part}) for way in (best, chance))
        screen.line()
        screen.line(f"  {name}: " + "{:.0%} ({:.0%})".format(*shares))
        cells = []
        for word in part:
            n_right, by_chance = best[word].sum(), chance[word].sum()
            cell = f"{word} {n_right:.0f}/{len(best[word])} ({by_chance:.1f})".ljust(21)
            cells.append(screen.paint(cell, "green" if n_right > by_chance else "red"))
        per_line = (screen.width - 4) // 21
        for i in range(0, len(cells), per_line):
            screen.line("    ", *cells[i : i + per_line])


def score(found: Found, compare: Callable[[list[Context]], np.ndarray]) -> dict[str, np.ndarray]:
    """The `accuracy` of each context of each word."""
    return {word: accuracy(contexts, compare(contexts)) for word, contexts in found.items()}


def mean(by_word: dict[str, np.ndarray]) -> float:
    return float(np.concatenate(list(by_word.values())).mean())


def show_groups(screen: Screen, repeated: Found) -> None:
    """The contexts of repeated words, grouped by similarity.

    Words of the built-in sentences come first, names last, frequent words before rare ones.
    """
    screen.title(
        "Words that occur more than once",
        "Each occurrence with the number of its nearest other one and their cosine, by what "
        "surrounds the word; their static vectors are (nearly) the same. Similar occurrences form a "
        "group.",
    )
    ambiguous = {word for word, _, _ in read_sentences()}

    def rank(word: str) -> tuple[bool, bool, int]:
        n_titles = sum(c.text[1].istitle() for c in repeated[word])
        return word not in ambiguous, 2 * n_titles > len(repeated[word]), -len(repeated[word])

    chosen = sorted(repeated, key=rank)[:REPEATED_SHOWN]
    for word in chosen:
        contexts, count = repeated[word][:CONTEXTS_SHOWN], len(repeated[word])
        similarity = similarities(contexts)
        nearest = np.where(np.eye(len(contexts)), -np.inf, similarity).argmax(axis=1).tolist()
        label = divide(1 - similarity, MOST_SENSES)
        times = f"{count} times" if count == len(contexts) else f"first {len(contexts)} of {count}"
        screen.line()
        screen.line("  ", screen.paint(word, bold=True), screen.dim(f", {times}"))
        for number in range(label.max() + 1):
            if number:
                screen.line(screen.dim("  ─────"))
            for i in np.flatnonzero(label == number).tolist():
                j = nearest[i]
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
        text = screen.keyword((blank.left, BLANK, blank.right), screen.width - 4).strip()
        screen.line()
        screen.line("  ", text)
        filled = lm.fill(blank.words, blank.place, 12)
        for name, guesses in zip(WAYS.values(), filled, strict=True):
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
    found = [
        (surprise, sentence[surprise.position])
        for sentence in sentence_bounds(doc).tokens
        for surprise in lm.surprises([doc[i].text for i in sentence])
        if not doc[sentence[surprise.position]].is_punct
    ]
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
