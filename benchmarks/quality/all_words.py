"""The senses of all words of a text, from those of SemCor by the nearest mean vector.

    python benchmarks/quality/all_words.py DATA [--weights en_sm] [--most SENTENCES]

As in Peters et al. 2018, section 5.3: the vectors of each WordNet sense are averaged over SemCor
(brown1, brown2), and an instance of the Senseval and SemEval tasks that Raganato et al. 2017 have
unified gets the sense of its lemma and part of speech whose mean is nearest. Printed are the
percentages that are right: of all instances, where those whose lemma is not in SemCor are wrong
(WordNet's first sense, the usual answer, is not in the data); and of those for which SemCor has two
senses or more. The kinds of vectors are those of `similarity.py`. Of several words that are one
lemma the vector is that of the last.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from similarity import Vectors, get_statistics, lines, make_nlp, token_vectors, unit
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
        found = token_vectors(doc, tokens, get_statistics(nlp))
        yield from zip(instances, found, strict=True)


class Found(NamedTuple):
    """Percentages that are right, by the kind of vectors.

    Attributes:
        all, ambiguous: of all instances, and of those with two senses or more.
        n, n_ambiguous: how many there are.
    """

    all: dict[str, float]
    ambiguous: dict[str, float]
    n: int
    n_ambiguous: int


def measure(nlp: Language, data: Path, most: int | None = None) -> Found:
    """Give each instance the nearest sense.

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
    right: Counter[str] = Counter()
    right_of_ambiguous: Counter[str] = Counter()
    n = n_ambiguous = 0
    for instance, vectors in read(nlp, test):
        senses = [sense for sense, _ in counts[instance.lemma].most_common()]
        answers = dict.fromkeys(("most frequent sense", *vectors), senses[0] if senses else "")
        if len(senses) > 1:
            for kind, vector in vectors.items():
                means = unit(np.stack([sums[sense][kind] for sense in senses]))
                answers[kind] = senses[(means @ vector).argmax()]
        hits = [kind for kind, answer in answers.items() if answer in instance.senses]
        n, n_ambiguous = n + 1, n_ambiguous + (len(senses) > 1)
        right.update(hits)
        right_of_ambiguous.update(hits if len(senses) > 1 else ())
    kinds = list(answers)
    return Found(
        {kind: 100 * right[kind] / n for kind in kinds},
        {kind: 100 * right_of_ambiguous[kind] / max(n_ambiguous, 1) for kind in kinds},
        n,
        n_ambiguous,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="with wsd/semcor and wsd/raganato-all")
    parser.add_argument("--weights", default="en_sm", help="with statistics (default: en_sm)")
    parser.add_argument("--most", type=int, help="sentences of either to read")
    arguments = parser.parse_args()
    found = measure(make_nlp(arguments.weights), arguments.data, arguments.most)
    n_ambiguous = f"{found.n_ambiguous:,} with two senses or more"
    print(f"| | all {found.n:,} | {n_ambiguous} |\n|---|---|---|")
    for kind, right in found.all.items():
        print(f"| {kind} | {right:.1f} | {found.ambiguous[kind]:.1f} |")


if __name__ == "__main__":
    main()
