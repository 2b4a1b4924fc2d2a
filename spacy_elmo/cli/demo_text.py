"""The demo on the user's own text."""

from __future__ import annotations

from collections import defaultdict

from spacy.language import Language
from spacy.tokens import Doc

from ..lm.language_model import BLANK, LanguageModel
from ..pipeline.segments import sentence_bounds
from .blanks import Blank, around, find_blanks, prepare
from .demo_contexts import Context, context, cosines, group, labelled, vectors
from .demo_screen import Screen, clip, clip_start, sense_colour
from .demo_sentences import read_sentences
from .demo_tour import NO_HEAD, show_guesses

WORDS_SHOWN = 6
CONTEXTS_SHOWN = 12  # of one word
SURPRISES_SHOWN = 5


def show_text(screen: Screen, nlp: Language, lm: LanguageModel | None, text: str, n: int) -> None:
    """What can be shown of a text: guesses for its blanks, its repeated words, and more.

    Args:
        screen: where to.
        nlp: a pipeline whose elmo component stores layers.
        lm: None if the weights have no head.
        text: the user's, not empty.
        n: nearest contexts to show.
    """
    doc = nlp(prepare(text))
    blanks = find_blanks(doc)
    if blanks:
        show_blanks(screen, lm, blanks)
    words = content_words(doc)
    repeated = {word: places for word, places in words.items() if len(places) > 1}
    if repeated:
        show_repeated(screen, doc, repeated)
    known = show_known(screen, nlp, doc, {w: p for w, p in words.items() if w not in repeated}, n)
    if not blanks and not repeated:
        if lm is None:
            screen.msg.warn(NO_HEAD)
        else:
            show_surprises(screen, lm, doc)
    if not (blanks or repeated or known):
        screen.line()
        screen.line(screen.dim("To see more: repeat a word in another meaning, or write ___."))


def content_words(doc: Doc) -> dict[str, list[int]]:
    """Where each word occurs that means something by itself, in lower case."""
    found = defaultdict(list)
    for token in doc:
        if token.is_alpha and not token.is_stop and len(token) > 1:
            found[token.lower_].append(token.i)
    return dict(found)


def show_blanks(screen: Screen, lm: LanguageModel | None, blanks: list[Blank]) -> None:
    """Guesses for each blank."""
    screen.title("Filling the blank" if len(blanks) == 1 else "Filling the blanks")
    if lm is None:
        screen.msg.warn(NO_HEAD)
        return
    for blank in blanks:
        room = (screen.width - 9) // 2
        left, right = clip_start(blank.left, room), clip(blank.right, room)
        screen.line()
        screen.line("  ", left, screen.mark(BLANK), right)
        show_guesses(screen, lm, blank)


def show_repeated(screen: Screen, doc: Doc, repeated: dict[str, list[int]]) -> None:
    """The contexts of repeated words, those that belong together next to each other.

    Words of the demo's sentences come first, names last, the more frequent before the others.
    """
    screen.title("Words that the text repeats")
    screen.paragraph(
        "Every occurrence with the number of the one nearest to it and their cosine by ELMo's top "
        "layer; by their static vectors all are (nearly) the same. Those linked in this way, "
        "directly or through others, form a group."
    )
    ambiguous = {word for word, _, _ in read_sentences()}

    def interest(word: str) -> tuple[bool, bool, int]:
        names = sum(doc[i].is_title for i in repeated[word])
        return word not in ambiguous, 2 * names > len(repeated[word]), -len(repeated[word])

    chosen = sorted(repeated, key=interest)[:WORDS_SHOWN]
    for word in chosen:
        places = repeated[word][:CONTEXTS_SHOWN]
        contexts = [context(doc, i) for i in places]
        x = vectors(contexts, len(contexts[0].layers) - 1)
        similarity = cosines(x, x)
        nearest, groups = group(similarity)
        screen.line()
        count = len(repeated[word])
        times = f"{count} times" if count == len(places) else f"first {len(places)} of {count}"
        screen.line("  ", screen.paint(word, bold=True), screen.dim(f", {times}"))
        for number, members in enumerate(groups):
            if number:
                screen.line(screen.dim("  ─────"))
            for i in members:
                j = int(nearest[i])
                head = f"  {i + 1:2} " + screen.dim(f"→ {j + 1:2} {similarity[i, j]:5.2f}  ")
                fg = ("cyan", "yellow", "pink", "green")[number % 4]
                screen.line(head, screen.keyword(contexts[i].text, screen.width - 17, fg))
    if len(chosen) < len(repeated):
        screen.line()
        screen.line(screen.dim(f"{len(chosen)} of {len(repeated)} repeated words are shown."))


def show_known(
    screen: Screen, nlp: Language, doc: Doc, words: dict[str, list[int]], n: int
) -> bool:
    """For words that stand in the demo's sentences too, the nearest of those.

    Returns:
        Whether there are any.
    """
    sentences = [s for s in read_sentences() if s[0] in words]
    if not sentences:
        return False
    screen.title("Nearest contexts among the demo's sentences")
    screen.paragraph(
        "By the cosine of ELMo's top layer, with the sense that each is labelled with."
    )
    for word, others in labelled(nlp, sentences).items():
        own = context(doc, words[word][0])
        top = len(own.layers) - 1
        similarity = cosines(vectors([own], top), vectors(others, top))[0]
        senses = list(dict.fromkeys(c.sense for c in others))
        column = max(len(sense) for sense in senses) + 1
        room = screen.width - 9 - column
        screen.line()
        screen.line("       ▸ ", " " * column, screen.keyword(own.text, room, "green"))
        for i in (-similarity).argsort()[:n].tolist():
            _show_known(screen, others[i], float(similarity[i]), senses, column, room)
    return True


def _show_known(
    screen: Screen, other: Context, similarity: float, senses: list[str], column: int, room: int
) -> None:
    colour = sense_colour(senses, other.sense)
    label = screen.paint(other.sense.ljust(column), colour)
    screen.line(f"{similarity:7.2f}  ", label, screen.keyword(other.text, room, colour))


def show_surprises(screen: Screen, lm: LanguageModel, doc: Doc) -> None:
    """The words that the language model expects least where they stand."""
    screen.title("What surprises the language model most")
    tokens, bounds = sentence_bounds(doc)
    found = []
    for start, end in bounds:
        inside = tokens[start:end].tolist()
        for surprise in lm.surprises([doc[i].text for i in inside]):
            i = inside[surprise.place]
            if not doc[i].is_punct:
                found.append((surprise, i))
    if not found:
        screen.line("None of the words is in its vocabulary.")
        return
    screen.paragraph(
        "The words least expected given all others of their sentence, in bits, and what was "
        "expected instead (words outside of the vocabulary are left out)."
    )
    room = screen.width - 34
    screen.line()
    screen.line(screen.dim(f"   bits  {'':{room}}  expected"))
    for surprise, i in sorted(found, key=lambda pair: -pair[0].bits)[:SURPRISES_SHOWN]:
        text = screen.keyword(around(doc, i, 0, len(doc)), room, "yellow")
        guesses = clip("  ".join(word for word, _ in surprise.guesses), 23)
        screen.line(f"{surprise.bits:7.1f}  ", text, "  ", screen.dim(guesses))
