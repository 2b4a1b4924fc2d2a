"""The tasks of the benchmarks: what is learned, from which data, and for how long.

DATA, a folder, holds the data sets that benchmarks/README.md lists.
"""

from __future__ import annotations

import itertools
import json
import lzma
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.training.converters import conll_ner_to_docs, conllu_to_docs

Size = int | str  # of a training set: a number of sentences, a share such as "10%", or "all"


def parse_size(text: str) -> Size:
    """A `Size` of the command line.

    Raises:
        ValueError: it is none.
    """
    if text == "all" or (text.endswith("%") and 0 < float(text[:-1]) <= 100):
        return text
    return int(text)


class Task(NamedTuple):
    """What is learned, from how much, for how long.

    Attributes:
        factory: the spaCy component.
        score: what is reported, as `Language.evaluate` names it.
        steps: how many for some sizes, which are those measured by default; others are
            interpolated in the logarithm of the number of sentences.
        read: (data, split) to Docs.
        batch_words: words of a step.
        by_label: as many training texts of each label.
    """

    factory: str
    score: str
    steps: dict[Size, int]
    read: Callable[[Path, str], Iterator[Doc]]
    batch_words: int = 400
    by_label: bool = False

    def n_steps(self, n_sentences: int, total: int) -> int:
        """Steps for a number of training sentences, of so many that there are."""
        known = [math.log(count(size, total)) for size in self.steps]
        return round(np.interp(math.log(n_sentences), known, list(self.steps.values())))


def count(size: Size, total: int) -> int:
    """The number of sentences of a training set, at most all that there are."""
    if size == "all":
        return total
    if isinstance(size, str):
        return max(1, round(float(size[:-1]) / 100 * total))
    return min(size, total)


def read_ewt(data: Path, split: str) -> Iterator[Doc]:
    text = (data / "ud" / "UD_English-EWT" / f"{split}.conllu.xz").read_bytes()
    return conllu_to_docs(lzma.decompress(text).decode("utf8"), n_sents=1, no_print=True)


def read_wnut(data: Path, split: str) -> Iterator[Doc]:
    text = (data / "ner" / "wnut17" / f"{split}.iob.xz").read_bytes()
    yield from conll_ner_to_docs(lzma.decompress(text).decode("utf8"), n_sents=1, no_print=True)


def read_sst(data: Path, split: str) -> Iterator[Doc]:
    vocab = spacy.blank("en").vocab
    text = lzma.decompress((data / "textcat" / "sst2" / f"{split}.jsonl.xz").read_bytes())
    for line in text.decode("utf8").splitlines():
        sentence = json.loads(line)
        doc = Doc(vocab, words=sentence["text"].split())
        doc.cats = {label: float(label == sentence["label"]) for label in ("POS", "NEG")}
        yield doc


def read_banking(data: Path, split: str) -> Iterator[Doc]:
    nlp = spacy.blank("en")
    lines = lzma.decompress((data / "textcat" / "banking77" / f"{split}.jsonl.xz").read_bytes())
    queries = [json.loads(line) for line in lines.decode("utf8").splitlines()]
    labels = sorted({query["label"] for query in queries})
    for query in queries:
        doc = nlp.make_doc(query["text"])
        doc.cats = {label: float(label == query["label"]) for label in labels}
        yield doc


TASKS = {
    "tagger": Task("tagger", "tag_acc", {500: 600, 2000: 900, "all": 2000}, read_ewt),
    "parser": Task("parser", "dep_las", {500: 600, 2000: 900, "all": 2000}, read_ewt),
    "ner": Task("ner", "ents_f", {"all": 1000}, read_wnut),
    "textcat": Task("textcat", "cats_micro_f", {1000: 300, "all": 800}, read_sst),
    "intents": Task("textcat", "cats_micro_f", {770: 1000}, read_banking, by_label=True),
}


def examples_of(nlp: Language, task: Task, data: Path, split: str) -> list[Example]:
    stored = DocBin(docs=task.read(data, split), store_user_data=True)
    references = stored.get_docs(nlp.vocab)
    words = ((doc, [token.text for token in doc]) for doc in references)
    return [Example(Doc(nlp.vocab, words=each), doc) for doc, each in words if each]


def sample(
    examples: list[Example], size: Size, rng: random.Random, by_label: bool
) -> list[Example]:
    """Some of the examples; ``by_label``: as many of each label as of any other."""
    if size == "all":
        return examples
    n = count(size, len(examples))
    if not by_label:
        return rng.sample(examples, n)
    groups: dict[str, list[Example]] = {}
    for example in examples:
        cats = example.reference.cats
        groups.setdefault(max(cats, key=cats.__getitem__), []).append(example)
    each = max(1, n // len(groups))
    return [e for group in groups.values() for e in rng.sample(group, min(each, len(group)))]


def batches(
    examples: list[Example], batch_words: int, seed: int
) -> Iterator[tuple[int, list[Example]]]:
    """Epoch and batch, without end; the same ones for the same seed."""
    rng = random.Random(seed)
    for epoch in itertools.count():
        shuffled = rng.sample(examples, len(examples))
        for batch in minibatch_by_words(shuffled, batch_words):
            yield epoch, batch
