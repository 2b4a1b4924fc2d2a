"""Finds the contexts of a word in a corpus and groups them by similarity: roughly, its senses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import to_numpy

from ..encoding.encoder import Encoder
from ..encoding.row_files import RowFiles
from ..encoding.rows import make_docs, make_sentence, text_of
from ..pipeline.doc_output import compared_rows
from ..pipeline.similarity import occurrence_vector
from ..text.segments import sentence_bounds
from ..util.optional_imports import require_extra
from ..util.progress import ProgressBar
from .clusters import MIN_SILHOUETTE, MIN_SIZE, MOST_ITEMS, center, cluster

MOST_KEYWORDS = 3  # for a group
MIN_CONTEXTS = 3  # fewer cannot be grouped
MOST_SENSES = 8  # if the silhouette decides; a fixed number may be larger
CHUNK_TOKENS = 20_000  # of the corpus, in memory
BATCH = 32  # sentences that are read at once
MOST_WORDS = 400  # in a sentence: each word is compared with all others


class Context(NamedTuple):
    """One occurrence of a word.

    Attributes:
        text: the text left of the word, the word, and the text right of it.
        vector: its `occurrence_vector` ``(5P,)``; if the weights have no statistics, its top layer
            ``(2P,)``.
        row: the id of its row in the corpus.
    """

    text: tuple[str, str, str]
    vector: np.ndarray
    row: Any = None


def make_context(doc: Doc, sentence: Sequence[int], i: int, row: Any = None) -> Context:
    """Make a context from an occurrence of a word; its text is the whole Doc.

    Args:
        doc: a Doc from an elmo component that stores layers.
        sentence: the token indices of the words in the sentence.
        i: the token index of the word.
        row: see `Context`.
    """
    text = (doc[:i].text_with_ws, doc[i].text, (doc[i].whitespace_ + doc[i + 1 :].text).rstrip())
    rows = compared_rows(doc)
    if rows is None:
        vector = to_numpy(doc._.elmo_layers[-1, i]).copy()
    else:
        vector = occurrence_vector(rows[list(sentence)], list(sentence).index(i))
    return Context(text, vector, row)


class Sense(NamedTuple):
    """A group of similar contexts.

    Attributes:
        contexts: the contexts, the most typical ones first.
        keywords: words that are more frequent in these contexts than in others. If there are none,
            words of the first context.
    """

    contexts: list[Context]
    keywords: list[str]


class Senses(NamedTuple):
    """The contexts of a word in groups. `viz.draw_senses` draws them.

    Attributes:
        word: the word, as the user wrote it.
        groups: at least one group, the largest first.
        complete: False if these contexts are a sample.
        silhouette: the highest mean silhouette of a division; None if no division has two groups of
            two contexts, or the number of groups was given.
    """

    word: str
    groups: list[Sense]
    complete: bool
    silhouette: float | None = None

    @property
    def why_one(self) -> str:
        """Say why there is one group although no number was given."""
        if self.silhouette is None:
            return f"no division has two groups of {MIN_SIZE} contexts"
        return (
            f"the best division has a mean silhouette of {self.silhouette:.2f}, and at "
            f"{MIN_SILHOUETTE} or less, groups are hardly closer in themselves than to each other"
        )

    def to_json(self) -> dict[str, Any]:
        """The groups and their contexts in JSON types, without vectors."""
        names, senses = ("left", "word", "right", "row"), []
        for group in self.groups:
            contexts = [dict(zip(names, (*c.text, c.row), strict=True)) for c in group.contexts]
            senses.append({"keywords": group.keywords, "contexts": contexts})
        facts = {name: getattr(self, name) for name in ("word", "complete", "silhouette")}
        return {**facts, "senses": senses}


def find_senses(
    word: str,
    corpus: str,
    *,
    weights: str = "en_sm",
    lang: str | None = None,
    tokenized: bool = False,
    column: str | None = None,
    max_contexts: int = MOST_ITEMS,
    n_senses: int | None = None,
    quiet: bool = False,
) -> Senses:
    """Find the contexts of a word in a corpus, and group them. Equal sentences count once.

    Args:
        word: a token of the corpus; upper and lower case are the same.
        corpus: a file, a directory or a pattern, see `encoding.row_files.RowFiles`.
        weights: the name or directory of a biLM.
        lang: the language of the text; None for that of the weights.
        tokenized: text files have a sentence per line and spaces between words.
        column: the column of texts, see `encoding.row_files.RowFiles`.
        max_contexts: if there are more contexts, take a sample of this size, always the same.
        n_senses: the number of groups; None to let the silhouette decide, see `clusters.cluster`.
        quiet: show no progress.

    Raises:
        ValueError: the word is no token of the corpus, or has too few contexts for the number of
            groups; this number is below 1; or the corpus or the weights cannot be read.
    """
    require_extra("sklearn", "viz", "senses are grouped by scikit-learn", f"'{word}'")
    rows, word = RowFiles(corpus, tokenized, column), word.strip()
    rows.files()  # an error if there are no files
    encoder = Encoder(weights, lang=lang)
    nlp, encoder.elmo.store = encoder.nlp, ["layers"]
    with ProgressBar("sentences", quiet=quiet) as bar:
        occurrences = find_occurrences(nlp, rows, word.lower(), bar)
        chosen, complete = take_sample(occurrences, max_contexts)
    if len(chosen) < (needed := max(MIN_CONTEXTS, n_senses or 0)):
        raise ValueError(
            f"'{word}' has {len(chosen)} different contexts in '{corpus}'; {needed} are needed. "
            f"Only tokens of this form are counted: give a word that is a single token, or more "
            f"text."
        )
    groups, silhouette = group_contexts(read_contexts(nlp, chosen), nlp, n_senses)
    return Senses(word, groups, complete, silhouette)


class Occurrence(NamedTuple):
    """A word in a sentence that the biLM has not read yet.

    Attributes:
        sentence: a Doc with this sentence alone.
        i: the token index of the word.
        row: see `Context`.
    """

    sentence: Doc
    i: int
    row: Any

    def digest(self) -> int:
        """A hash of the sentence, whatever its spaces, and of the word's place in it."""
        doc, i = self.sentence, self.i
        parts = (" ".join(span.text.split()) for span in (doc[:i], doc[i : i + 1], doc[i + 1 :]))
        text = "\0".join(parts).encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def find_occurrences(
    nlp: Language, corpus: RowFiles, word: str, bar: ProgressBar
) -> Iterator[Occurrence]:
    """Yield the occurrences of a word, in the order of the corpus.

    Args:
        nlp: the pipeline that tokenizes the rows with the word.
        corpus: the rows to search.
        word: the word in lower case.
        bar: counts the rows.
    """
    for chunk in corpus.chunks(CHUNK_TOKENS):
        for number, row in zip(chunk.ids, chunk.rows, strict=True):
            if word not in text_of(row).lower():
                continue
            for doc in make_docs(nlp, [row]):
                tokens = chain.from_iterable(split_sentences(doc))
                yield from (Occurrence(t.doc, t.i, number) for t in tokens if t.lower_ == word)
        bar.update(len(chunk.ids))


def take_sample(occurrences: Iterable[Occurrence], most: int) -> tuple[list[Occurrence], bool]:
    """Take a sample of distinct occurrences.

    It has the smallest hashes: each occurrence is equally likely, memory is bounded, and the same
    texts give the same sample, however often each occurs.

    Args:
        occurrences: the occurrences of a word.
        most: the size of the sample.

    Returns:
        The sample in its order, and whether it has all distinct occurrences.
    """
    heap, kept, complete = list[tuple[int, int, Occurrence]](), set[int](), True
    for number, occurrence in enumerate(occurrences):
        digest = occurrence.digest()
        if digest in kept:
            continue
        kept.add(digest)
        heappush(heap, (-digest, number, occurrence))  # the largest hash first
        if len(heap) > most:
            kept.remove(-heappop(heap)[0])
            complete = False
    return [occurrence for _, _, occurrence in sorted(heap, key=itemgetter(1))], complete


def read_contexts(nlp: Language, occurrences: Iterable[Occurrence]) -> list[Context]:
    """Read each sentence once, and make contexts. The elmo component of ``nlp`` stores layers."""
    contexts = []
    by_sentence = groupby(occurrences, key=attrgetter("sentence"))
    sentences = ((sentence, list(words)) for sentence, words in by_sentence)
    for doc, words in nlp.pipe(sentences, as_tuples=True, batch_size=BATCH):
        [tokens] = sentence_bounds(doc).tokens
        contexts += [make_context(doc, tokens, word.i, word.row) for word in words]
    return contexts


def split_sentences(doc: Doc) -> Iterator[Doc]:
    """Yield a Doc for each sentence, without whitespace at its ends. A sentence of more than
    `MOST_WORDS`, as in a text without punctuation, becomes several."""
    for sentence in sentence_bounds(doc).tokens:
        for part in minibatch(sentence, MOST_WORDS):
            tokens = doc[part[0] : part[-1] + 1]
            words, spaces = [t.text for t in tokens], [bool(t.whitespace_) for t in tokens]
            yield make_sentence(doc.vocab, words, spaces)


def group_contexts(
    contexts: Sequence[Context], nlp: Language, n_senses: int | None = None
) -> tuple[list[Sense], float | None]:
    """Group contexts by the similarity of their vectors.

    Args:
        contexts: two contexts or more.
        nlp: a pipeline, whose tokenizer and stop words decide on keywords.
        n_senses: the number of groups; None to let the silhouette decide.

    Returns:
        The groups, the largest first, and the best silhouette, see `cluster`.

    Raises:
        ValueError: the number of groups is below 1, or above the number of contexts.
    """
    vectors = center(np.stack([context.vector for context in contexts]))
    label, silhouette = cluster(1 - vectors @ vectors.T, MOST_SENSES, n_senses)
    words = [content_words(nlp, context) for context in contexts]
    groups = []
    for number in range(label.max() + 1):
        members, others = np.flatnonzero(label == number), np.flatnonzero(label != number)
        typicality = vectors[members] @ vectors[members].mean(axis=0)
        typical = members[np.argsort(-typicality, kind="stable")]
        keywords = find_keywords([words[i] for i in members], [words[i] for i in others])
        keywords = keywords or [*dict.fromkeys(words[typical[0]])][:MOST_KEYWORDS]
        groups.append(Sense([contexts[i] for i in typical], keywords))
    return groups, silhouette


def content_words(nlp: Language, context: Context) -> list[str]:
    """The words in a context in lower case, without stop words and the word itself."""
    left, word, right = context.text
    tokens = chain(nlp.make_doc(left), nlp.make_doc(right))
    return [t.lower_ for t in tokens if t.is_alpha and not t.is_stop and t.lower_ != word.lower()]


def find_keywords(group: Sequence[list[str]], others: Sequence[list[str]]) -> list[str]:
    """Find up to `MOST_KEYWORDS` words for a group of contexts.

    Words in two contexts of the group or more are ranked by the share of contexts that have the
    word, minus the share among other contexts.

    Args:
        group: the words of each context in the group.
        others: the words of each other context.
    """
    inside, outside = (Counter(chain.from_iterable(map(set, part))) for part in (group, others))
    rest = max(len(others), 1)
    margin = {w: n / len(group) - outside[w] / rest for w, n in inside.items() if n > 1}
    ranked = sorted((-value, w) for w, value in margin.items() if value > 0)
    return [w for _, w in ranked[:MOST_KEYWORDS]]
