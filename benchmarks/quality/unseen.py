"""What limits a tagger of few sentences: words that its training set does not have?

    python benchmarks/quality/unseen.py OUT/pl-both-60

The folder is one that `languages.py` has made, with its taggers of seed 0.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin
from tables import ELMO, NOTHING


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    vocab = spacy.blank("xx").vocab
    files = (folder / "corpus" / "ud" / f"{split}.spacy" for split in ("train", "test"))
    train, test = ([*DocBin().from_disk(file).get_docs(vocab)] for file in files)
    known = {token.text for doc in train for token in doc}
    for arm in (NOTHING, ELMO):
        nlp = spacy.load(folder / "models" / f"tagger-{arm}-0" / "model-last")
        docs = nlp.pipe(Doc(nlp.vocab, [token.text for token in doc]) for doc in test)
        pairs = [pair for both in zip(test, docs, strict=True) for pair in zip(*both, strict=True)]
        for words, is_known in [("words that the training set has", True), ("other words", False)]:
            right = [a.tag_ == b.tag_ for a, b in pairs if (a.text in known) == is_known]
            share = f"{sum(right) / len(right):.1%} of " if right else ""
            print(f"{arm}: {share}{len(right):,} {words}")


if __name__ == "__main__":
    main()
