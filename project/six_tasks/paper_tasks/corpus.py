"""Corpora whose Docs keep what is asked of them; spaCy's own reader keeps their words alone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Iterable, Optional  # noqa: UP035

from spacy.attrs import ORTH, SENT_START, SPACY
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab

from .inputs import GIVEN

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP045


@registry.readers("six_tasks.Corpus.v1")
def Corpus(path: Optional[str], limit: int = 0) -> Callable[[Language], Iterable[Example]]:
    """``six_tasks.Corpus.v1``: examples of a .spacy file, with the words of its Docs.

    Args:
        path: the file; None in a config that is given it later.
        limit: the most examples; 0: all.

    Raises:
        ValueError: there is no path when it is read.
    """

    references: list[Doc] = []  # read once: spaCy is slow at groups of spans

    def read(nlp: Language) -> Iterator[Example]:
        if not references or references[0].vocab is not nlp.vocab:
            if path is None:
                raise ValueError("A corpus has no path: set paths.train and paths.dev.")
            references[:] = read_docs(nlp.vocab, Path(path))
        for reference in references[: limit or None]:
            yield make_example(reference)

    return read


def read_docs(vocab: Vocab, path: Path) -> list[Doc]:
    return list(DocBin(store_user_data=True).from_disk(path).get_docs(vocab))


def make_example(reference: Doc) -> Example:
    """A Doc to learn from or to be scored by, and one of the same words with its sentences and what
    is given to components alone."""
    # By arrays: spaCy needs milliseconds for all tokens of a Doc.
    found = reference.to_array([ORTH, SPACY, SENT_START])
    predicted = Doc(
        reference.vocab,
        words=[reference.vocab.strings[word] for word in found[:, 0].tolist()],
        spaces=found[:, 1].astype(bool).tolist(),
        sent_starts=found[:, 2].astype("int64").tolist(),
    )
    for key in GIVEN:
        if key in reference.spans:
            spans = reference.spans[key]
            predicted.spans[key] = [predicted[span.start : span.end] for span in spans]
    return Example(predicted, reference)
