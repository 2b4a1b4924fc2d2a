"""Corpora whose Docs keep what is asked of them; spaCy's own reader keeps their words alone."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Iterable, Optional  # noqa: UP035

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab

from .inputs import copy_given

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP045


@registry.readers("six_tasks.Corpus.v1")
def Corpus(
    path: Optional[str], share: float = 1.0, seed: int = 0, limit: int = 0
) -> Callable[[Language], Iterable[Example]]:
    """``six_tasks.Corpus.v1``: examples of a .spacy file, with the words of its Docs.

    Args:
        path: the file; None in a config that is given it later.
        share: of the Docs, drawn at random, at least one.
        seed: of the draw.
        limit: the most examples; 0: all.

    Raises:
        ValueError: there is no path when it is read.
    """

    references: list[Doc] = []  # read once: spaCy is slow at groups of spans

    def read(nlp: Language) -> Iterator[Example]:
        if not references or references[0].vocab is not nlp.vocab:
            if path is None:
                raise ValueError("A corpus has no path: set paths.train and paths.dev.")
            references[:] = draw(read_docs(nlp.vocab, Path(path)), share, seed)
        for reference in references[: limit or None]:
            yield make_example(reference)

    return read


def read_docs(vocab: Vocab, path: Path) -> list[Doc]:
    return list(DocBin(store_user_data=True).from_disk(path).get_docs(vocab))


def draw(docs: list[Doc], share: float, seed: int) -> list[Doc]:
    """A share of the Docs, at least one, in their order."""
    if share == 1:
        return docs
    chosen = random.Random(seed).sample(range(len(docs)), max(1, round(share * len(docs))))
    return [docs[i] for i in sorted(chosen)]


def make_example(reference: Doc) -> Example:
    """A Doc to learn from or to be scored by, and one with what is given to components alone."""
    words = [token.text for token in reference]
    predicted = Doc(reference.vocab, words=words, spaces=[bool(t.whitespace_) for t in reference])
    copy_given(reference, predicted)
    return Example(predicted, reference)
