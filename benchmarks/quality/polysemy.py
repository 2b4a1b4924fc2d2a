"""Which contexts of real text are nearest to a word in each of its senses?

The table of Peters et al. 2018 (table 4) for *play*, with its two sentences, and for six more
words. Each sentence is compared with the first occurrences of its word in a corpus, by the vectors
that `elmo senses` groups: the context and the topic of the sentence, not the word itself, less what
all these occurrences have in common.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
from spacy.language import Language

from spacy_elmo.encoding.rows import RowFiles
from spacy_elmo.senses.clusters import center
from spacy_elmo.senses.occurrences import Context, contexts, make_context
from spacy_elmo.text.segments import sentence_bounds
from spacy_elmo.util.progress import ProgressBar

SENTENCES = {
    "play": (
        "Chico Ruiz made a spectacular play on Alusik's grounder.",
        "Olivia De Havilland signed to do a Broadway play for Garson.",
        "She has learned to play the piano and the violin.",
    ),
    "bank": (
        "The bank refused to lend him the money for a second house.",
        "We sat on the bank and watched the boats go down the river.",
    ),
    "stick": (
        "The old man leaned on his stick as he climbed the stairs.",
        "Let us stick to the plan we agreed on.",
    ),
    "bat": (
        "He swung the bat and hit the ball over the fence.",
        "A bat flew out of the cave to catch insects in the dark.",
    ),
    "spring": (
        "The trees come into leaf in spring, and the winter is over.",
        "Clear water rose from a spring at the foot of the hill.",
    ),
    "lead": (
        "The pipes were made of lead, a metal that is toxic.",
        "The team took the lead early in the second half.",
        "This policy will lead to higher prices.",
    ),
    "read": (
        "I like to read novels before I fall asleep.",
        "Yesterday he read the letter twice and threw it away.",
    ),
}
SIDE = 50  # characters of text that are shown on each side


def row(word: str, nearest: list[str]) -> str:
    return f"| {word} | " + "<br>".join(nearest).replace("|", "\\|") + " |"


def shown(context: Context, cosine: float | None = None) -> str:
    """The words around an occurrence, on one line."""
    left, word, right = (" ".join(part.split()) for part in context.text)
    if len(left) > SIDE:
        left = "… " + left[-SIDE:].partition(" ")[2]
    if len(right) > SIDE:
        right = right[:SIDE].rpartition(" ")[0] + " …"
    space = "" if right[:1] in {"", ".", ",", ";", ":", "!", "?", "'", "’", ")"} else " "
    number = "" if cosine is None else f" ({cosine:.2f})"
    return f"{left} **{word}**{space}{right}{number}".strip()


def nearest(nlp: Language, corpus: RowFiles, word: str, most: int, n: int) -> list[str]:
    """The rows of a word: each of its sentences with the n nearest contexts."""
    sources = []
    for doc in nlp.pipe(SENTENCES[word]):
        i = next(token.i for token in doc if token.lower_ == word)
        [sentence] = sentence_bounds(doc, "doc").tokens
        sources.append(make_context(doc, sentence, i))
    found = list(islice(contexts(nlp, corpus, word, ProgressBar("texts", quiet=True)), most))
    if not found:
        return [row(shown(source), ["does not occur in the corpus"]) for source in sources]
    vectors = center(np.stack([context.vector for context in [*sources, *found]]))
    cosines = vectors[: len(sources)] @ vectors[len(sources) :].T
    return [
        row(shown(source), [shown(found[i], near[i]) for i in np.argsort(-near)[:n]])
        for source, near in zip(sources, cosines, strict=True)
    ]
