"""The senses of all words of a text, from those of SemCor by the nearest mean vector.

As in Peters et al. 2018, section 5.3: the vectors of each WordNet sense are averaged over SemCor
(brown1, brown2), and an instance of the Senseval and SemEval tasks that Raganato et al. 2017 have
unified gets the sense of its lemma and part of speech whose mean is nearest. Those whose lemma is
not in SemCor are wrong (WordNet's first sense, the usual answer, is not in the data). The kinds of
vectors are those of `similarity.py`. Of several words that are one lemma the vector is that of the
last.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from similarity import Vectors, lines, token_vectors, unit
from spacy.language import Language
from spacy.tokens import Doc

PARTS_OF_SPEECH = {"NOUN": "1", "VERB": "2", "ADJ": "3", "ADV": "4"}
SATELLITE = "5"  # adjectives, too


class Instance(NamedTuple):
    """A word with its sense.

    Attributes:
        token: its index in the sentence.
        lemma: with its part of speech, as ``play%2``.
        senses: those that are right, as ``play%2:33:00::``.
    """

    token: int
    lemma: str
    senses: list[str]


class Sentence(NamedTuple):
    words: list[str]
    instances: list[Instance]


def lemma_of(sense: str) -> str:
    lemma, _, place = sense.partition("%")
    return f"{lemma}%{place[0].replace(SATELLITE, PARTS_OF_SPEECH['ADJ'])}"


def read_semcor(data: Path) -> Iterator[Sentence]:
    for part in ("brown1", "brown2"):
        for row in map(json.loads, lines(data / "wsd" / "semcor" / f"{part}.jsonl.xz")):
            sentence = Sentence([], [])
            for token, senses in zip(row["tokens"], row["sense"], strict=True):
                sentence.words.extend(token.replace("_", " ").split() or ["_"])
                if senses:
                    found = senses.split(";")
                    last = len(sentence.words) - 1
                    sentence.instances.append(Instance(last, lemma_of(found[0]), found))
            yield sentence


def read_raganato(data: Path) -> Iterator[Sentence]:
    folder = data / "wsd" / "raganato-all"
    gold = {key: senses for key, *senses in map(str.split, lines(folder / "ALL.gold.key.txt.xz"))}
    xml = ElementTree.fromstringlist(lines(folder / "ALL.data.xml.xz"))
    for element in xml.iter("sentence"):
        sentence = Sentence([], [])
        for token in element:
            sentence.words.extend(token.text.split())
            if token.tag == "instance":
                lemma = f"{token.get('lemma')}%{PARTS_OF_SPEECH[token.get('pos')]}"
                last = len(sentence.words) - 1
                sentence.instances.append(Instance(last, lemma, gold[token.get("id")]))
        yield sentence


def read(nlp: Language, sentences: list[Sentence]) -> Iterator[tuple[Instance, Vectors]]:
    """All instances with their vectors."""
    docs = ((Doc(nlp.vocab, words=s.words), s.instances) for s in sentences if s.instances)
    for doc, instances in nlp.pipe(docs, as_tuples=True):
        tokens = [instance.token for instance in instances]
        found = token_vectors(doc, tokens)
        yield from zip(instances, found, strict=True)


def measure(nlp: Language, data: Path, most: int | None = None) -> dict[str, Any]:
    """Percentages of "all" instances that get the nearest sense, by the kind of vectors; their "n".

    Args:
        nlp: see `similarity.make_nlp`.
        data: with wsd/semcor and wsd/raganato-all.
        most: sentences of either to read; None: all.
    """
    test = list(islice(read_raganato(data), most))
    wanted = {instance.lemma for sentence in test for instance in sentence.instances}
    semcor = [
        Sentence(words, [instance for instance in instances if instance.lemma in wanted])
        for words, instances in islice(read_semcor(data), most)
    ]

    counts: dict[str, Counter[str]] = defaultdict(Counter)  # of the senses of each lemma
    sums: dict[str, Vectors] = {}  # of each sense
    for instance, vectors in read(nlp, semcor):
        for sense in instance.senses:
            counts[instance.lemma][sense] += 1
            total = sums.setdefault(sense, {})
            for kind, vector in vectors.items():
                total[kind] = total.get(kind, 0) + vector
    right, n = Counter[str](), 0
    for instance, vectors in read(nlp, test):
        n += 1
        senses = [sense for sense, _ in counts[instance.lemma].most_common()]
        answers = dict.fromkeys(("most frequent sense", *vectors), senses[0] if senses else "")
        if len(senses) > 1:
            for kind, vector in vectors.items():
                means = unit(np.stack([sums[sense][kind] for sense in senses]))
                answers[kind] = senses[(means @ vector).argmax()]
        right.update(dict.fromkeys(answers, 0))
        right.update(kind for kind, answer in answers.items() if answer in instance.senses)
    return {"all": {kind: 100 * hits / n for kind, hits in right.items()}, "n": n}
