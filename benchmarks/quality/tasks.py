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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.training.converters import conll_ner_to_docs, conllu_to_docs

from spacy_elmo.text.readers import blank

FEW = 400  # sentences of a small treebank to learn from
MOST_TEXTS = 20_000  # of a split of labelled texts; NSMC has 80,000

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
        lang: of the texts.
    """

    factory: str
    score: str
    steps: dict[Size, int]
    read: Callable[[Path, str], Iterator[Doc]]
    batch_words: int = 400
    by_label: bool = False
    lang: str = "en"

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


def read_text(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode("utf8")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """JSON of each line."""
    return [json.loads(line) for line in read_text(path).splitlines()]


def read_ewt(data: Path, split: str, n_sents: int = 1) -> Iterator[Doc]:
    text = read_text(data / "ud" / "UD_English-EWT" / f"{split}.conllu.xz")
    return conllu_to_docs(text, n_sents=n_sents, no_print=True)


def read_wnut(data: Path, split: str) -> Iterator[Doc]:
    text = read_text(data / "ner" / "wnut17" / f"{split}.iob.xz")
    yield from conll_ner_to_docs(text, n_sents=1, no_print=True)


def read_few(lang: str, data: Path, split: str, n_sents: int = 1) -> Iterator[Doc]:
    """A treebank of another language: 400 sentences to learn from, the rest of its dev set, and
    its test set. The tags are the universal ones where it has no others."""
    name = "test" if split == "test" else "few"
    text = read_text(data / "languages" / lang / f"ud.{name}.conllu.xz")
    docs, few = conllu_to_docs(text, n_sents=n_sents, no_print=True), FEW // n_sents
    first, last = {"train": (0, few), "dev": (few, None), "test": (0, None)}[split]
    for doc in itertools.islice(docs, first, last):
        for token in doc:
            token.tag_ = token.tag_.strip("_") or token.pos_
        yield doc


def read_iob(lang: str, data: Path, split: str) -> Iterator[Doc]:
    """Named entities of another language, tagged in the third column."""
    text = read_text(data / "languages" / lang / f"ner.{split}.iob2.xz")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    lines = ("_".join(row[1].split()) + f"\t{row[2]}" if len(row) > 2 else "" for row in rows)
    yield from conll_ner_to_docs("\n".join(lines) + "\n", n_sents=1, no_print=True)


def read_sst(data: Path, split: str) -> Iterator[Doc]:
    vocab = spacy.blank("en").vocab
    for sentence in read_rows(data / "textcat" / "sst2" / f"{split}.jsonl.xz"):
        doc = Doc(vocab, words=sentence["text"].split())
        doc.cats = {label: float(label == sentence["label"]) for label in ("POS", "NEG")}
        yield doc


def read_labelled(name: str, lang: str, data: Path, split: str) -> Iterator[Doc]:
    """Texts of one class each."""
    nlp = blank(lang, "spacy.Tokenizer.v1")
    rows = read_rows(data / "textcat" / name / f"{split}.jsonl.xz")[:MOST_TEXTS]
    labels = sorted({row["label"] for row in rows})
    for row in rows:
        doc = nlp.make_doc(row["text"])
        doc.cats = {label: float(label == row["label"]) for label in labels}
        yield doc


TASKS = {
    "tagger": Task("tagger", "tag_acc", {500: 600, 2000: 900, "all": 2000}, read_ewt),
    "parser": Task("parser", "dep_las", {500: 600, 2000: 900, "all": 2000}, read_ewt),
    "ner": Task("ner", "ents_f", {"all": 1000}, read_wnut),
    "textcat": Task("textcat", "cats_micro_f", {1000: 300, "all": 800}, read_sst),
    "intents": Task(
        "textcat", "cats_micro_f", {770: 1000}, partial(read_labelled, "banking77", "en"),
        by_label=True,
    ),
    "requests": Task(
        "textcat", "cats_micro_f", {1500: 1000}, partial(read_labelled, "clinc150", "en"),
        by_label=True,
    ),
    "subjectivity": Task(
        "textcat", "cats_micro_f", {500: 300}, partial(read_labelled, "subj", "en")
    ),
    "ko-textcat": Task(
        "textcat", "cats_micro_f", {1000: 300}, partial(read_labelled, "nsmc", "ko"), lang="ko"
    ),
}  # fmt: skip
for lang in ("de", "hu", "pt", "ro", "sv", "uk"):
    few = partial(read_few, lang)
    TASKS[f"{lang}-tagger"] = Task("tagger", "tag_acc", {FEW: 600}, few, lang=lang)
    TASKS[f"{lang}-parser"] = Task("parser", "dep_las", {FEW: 600}, few, lang=lang)
    if lang in ("pt", "sv"):
        TASKS[f"{lang}-ner"] = Task("ner", "ents_f", {500: 600}, partial(read_iob, lang), lang=lang)
ENGLISH = [name for name, task in TASKS.items() if task.lang == "en"]


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
