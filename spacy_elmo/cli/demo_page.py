"""The demo as a page of pictures: senses of a word, similar sentences, surprisal."""

from __future__ import annotations

from collections import defaultdict

from spacy.language import Language
from spacy.tokens import Doc

from ..pipeline.segments import sentence_bounds
from ..senses import MIN_CONTEXTS, Context, after, group, make_context, split_sentences
from ..viz.picture import Picture, html_page
from ..viz.senses import draw_senses
from ..viz.similarity import draw_similarity
from ..viz.surprisal import draw_surprisal
from .demo_contexts import read_sentences

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
        words = {WORD: repeated_words(docs)[WORD]}
    else:
        docs = list(nlp.pipe(split_sentences(nlp.make_doc(" ".join(text.split())))))
        words = repeated_words(docs)
    pictures: list[Picture] = []
    word, contexts = max(words.items(), key=lambda item: len(item[1]), default=("", []))
    if len(contexts) >= MIN_CONTEXTS:
        pictures.append(draw_senses(group(word, contexts, nlp=nlp)))
    docs = docs[:MOST_SENTENCES]
    if len(docs) > 1:
        pictures.append(draw_similarity(docs))
    if nlp.has_pipe("elmo_surprisal") and any(t._.surprisal is not None for d in docs for t in d):
        pictures.append(draw_surprisal(docs))
    return html_page("ELMo at work", [picture.html() for picture in pictures])


def repeated_words(docs: list[Doc]) -> dict[str, list[Context]]:
    """The contexts of the words that are not stop words, in lower case."""
    found = defaultdict(list)
    for doc in docs:
        for sentence in sentence_bounds(doc).tokens:
            for token in (doc[i] for i in sentence):
                if token.is_alpha and not token.is_stop and len(token) > 1:
                    text = (doc[: token.i].text_with_ws, token.text, after(doc, token.i))
                    found[token.lower_].append(make_context(doc, sentence, token.i, text))
    return found
