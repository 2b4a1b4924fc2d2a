"""Trains a table of floret's static vectors and writes a spaCy pipeline that has it.

    python make_floret.py OUT SENTENCES

The table has the shape of those that spaCy's medium pipelines have. It is trained on SENTENCES
(see `reader`) only, which is far too little for good vectors, but it is as fast as good ones.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import floret
import spacy
from spacy.training.initialize import convert_vectors

SHAPE = {"bucket": 50_000, "dim": 300, "hashCount": 2, "minn": 4, "maxn": 5}


def main(out: Path, file: Path) -> None:
    nlp = spacy.blank("en")
    with tempfile.TemporaryDirectory() as name:
        text, table = Path(name, "text"), Path(name, "table.floret")
        lines = map(" ".join, json.loads(file.read_text("utf-8")))
        text.write_text("\n".join(lines), encoding="utf8")
        model = floret.train_unsupervised(
            str(text), mode="floret", minCount=1, epoch=1, thread=1, verbose=0, **SHAPE
        )
        model.save_floret_vectors(str(table))
        convert_vectors(nlp, table, truncate=0, prune=-1, mode="floret")
    nlp.to_disk(out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
