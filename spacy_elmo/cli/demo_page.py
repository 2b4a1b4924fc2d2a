"""The demo as a page of pictures: senses of a word, similar sentences, surprisal."""

from __future__ import annotations

from spacy.language import Language

from ..senses import MIN_CONTEXTS, group, split_sentences
from ..viz.page import html_page
from ..viz.picture import Picture
from ..viz.senses import draw_senses
from ..viz.similarity import draw_similarity
from ..viz.surprisal import draw_surprisal
from .demo_contexts import contexts_by_word, read_sentences

WORD = "bank"  # of the built-in sentences
MOST_SENTENCES = 20  # in the pictures of sentences


def make_page(nlp: Language, text: str | None) -> str:
    """The page in HTML, which refers to nothing outside itself.

    Args:
        nlp: a pipeline whose elmo component stores layers. With a component elmo_surprisal, the
            page shows surprisal too.
        text: the user's; None for the built-in sentences. The senses are those of its most
            frequent word; they are left out if it has no word with enough contexts.
    """
    if text is None:
        docs = list(nlp.pipe(sentence for word, _, sentence in read_sentences() if word == WORD))
        words = {WORD: contexts_by_word(docs)[WORD]}
    else:
        docs = list(nlp.pipe(split_sentences(nlp.make_doc(" ".join(text.split())))))
        words = contexts_by_word(docs)
    pictures: list[Picture] = []
    word, contexts = max(words.items(), key=lambda item: len(item[1]), default=("", []))
    if len(contexts) >= MIN_CONTEXTS:
        pictures.append(draw_senses(group(word, contexts, nlp)))
    docs = docs[:MOST_SENTENCES]
    if len(docs) > 1:
        pictures.append(draw_similarity(docs))
    if nlp.has_pipe("elmo_surprisal") and any(t._.surprisal is not None for d in docs for t in d):
        pictures.append(draw_surprisal(docs))
    return html_page("ELMo at work", [picture.html() for picture in pictures])
