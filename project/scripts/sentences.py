"""Sentences of our own: thirty with all annotations, and the raw text of a tiny run.

Those of one group have the same tree. Parts of speech and entities belong to the words; spans are
the entities and, overlapping with them, the phrases with a preposition.
"""

from __future__ import annotations

from collections.abc import Iterator

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

# Relation and head of each word, counted from 1; then the sentences, each after its topic.
TREES = """
nsubj:2 root:0 det:4 obj:2 case:6 obl:2 punct:2
    money: Anna opened an account at Northbank .
    money: Oscar signed a cheque in Dover .
    money: Peter paid the loan at Northbank .
    nature: Maria saw a heron in Wales .
    nature: Oscar crossed the river at Dover .
det:2 nsubj:3 root:0 det:5 obj:3 punct:3
    money: The bank raised the rates .
    money: A clerk counted the coins .
    money: The bank refused a loan .
    nature: The heron watched the river .
    nature: A storm broke the bridge .
det:2 nsubj:3 root:0 case:6 det:6 obl:3 punct:3
    money: The clerk worked at the bank .
    money: The coins stayed in the account .
    nature: The ducks slept on the bank .
    nature: The river rose in the storm .
    nature: A boat waited at the bridge .
nsubj:2 root:0 case:5 amod:5 obl:2 punct:2
    money: Peter paid with old coins .
    money: Maria worked for low rates .
    money: They paid at high rates .
    nature: They swam in cold water .
    nature: Anna swam with wild ducks .
nsubj:2 root:0 cc:4 conj:2 advmod:4 punct:2
    money: Oscar signed and paid immediately .
    money: She counted and signed slowly .
    nature: They swam and slept quietly .
    nature: Maria watched and waited quietly .
    nature: She slept and waited slowly .
nsubj:4 aux:4 advmod:4 root:0 obj:4 case:7 obl:4 punct:4
    money: Northbank will never lend money to Oscar .
    money: She can now send money to Peter .
    money: Anna will now pay rates in Wales .
    nature: They can never watch ducks in Dover .
    nature: Peter will now see water at Wales .
"""
PARTS = """
NNP PROPN Number=Sing: Anna Oscar Peter Maria Northbank Dover Wales
NN NOUN Number=Sing: account cheque loan heron river bank clerk storm bridge boat water money
NNS NOUN Number=Plur: rates coins ducks
PRP PRON Person=3|PronType=Prs: They She
DT DET Definite=Def|PronType=Art: The the
DT DET Definite=Ind|PronType=Art: A a an
VBD VERB Tense=Past|VerbForm=Fin: opened signed paid saw crossed raised counted refused watched
VBD VERB Tense=Past|VerbForm=Fin: broke worked stayed slept rose waited swam
VB VERB VerbForm=Inf: lend send pay watch see
MD AUX VerbForm=Fin: will can
IN ADP : at in on with for to
JJ ADJ Degree=Pos: old low high cold wild
RB ADV : immediately slowly quietly never now
CC CCONJ : and
. PUNCT PunctType=Peri: .
"""
ENTITIES = {
    **dict.fromkeys(["Anna", "Oscar", "Peter", "Maria"], "PERSON"),
    **dict.fromkeys(["Dover", "Wales"], "GPE"),
    "Northbank": "ORG",
}
PHRASE = "PHRASE"
TOPICS = ("money", "nature")


def annotated_docs(vocab: Vocab) -> Iterator[Doc]:
    """The sentences."""
    parts = {}
    for line in PARTS.strip().splitlines():
        kind, words = line.split(": ", 1)
        parts.update(dict.fromkeys(words.split(), kind.split(" ")))
    tree: list[list[str]] = []
    for line in TREES.strip().splitlines():
        if not line.startswith(" "):
            tree = [node.split(":") for node in line.split()]
            continue
        topic, *words = line.split()
        tags, pos, morphs = zip(*(parts[word] for word in words), strict=True)
        doc = Doc(
            vocab,
            words=words,
            tags=list(tags),
            pos=list(pos),
            morphs=list(morphs),
            deps=["ROOT" if relation == "root" else relation for relation, _ in tree],
            heads=[i if head == "0" else int(head) - 1 for i, (_, head) in enumerate(tree)],
        )
        doc.ents = [
            Span(doc, i, i + 1, ENTITIES[word]) for i, word in enumerate(words) if word in ENTITIES
        ]
        phrases = [
            Span(doc, token.i, token.head.i + 1, PHRASE) for token in doc if token.dep_ == "case"
        ]
        doc.spans["sc"] = [*doc.ents, *phrases]
        doc.cats = {name: float(topic == f"{name}:") for name in TOPICS}
        yield doc


def raw_text(split: str) -> Iterator[str]:
    """Sentences of the demo, some of which are held out, and in training those above."""
    from spacy_elmo.cli.demo import read_sentences

    for i, (_, _, sentence) in enumerate(read_sentences()):
        if (i % 10 == 9) == (split == "dev"):
            yield sentence
    if split == "train":
        for line in TREES.splitlines():
            if line.startswith(" "):
                yield line.split(": ", 1)[1].replace(" .", ".")
