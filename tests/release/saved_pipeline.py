"""The pipeline that each release leaves for later ones to load.

    python -m tests.release.saved_pipeline

writes it anew, of this version, with what it predicts. Do so once for each release, and keep those
of the releases before; until the first one, also when what is saved has changed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import spacy
from spacy.training import Example

from spacy_elmo.about import __version__

from ..pipeline.helpers import write_weights

FOLDER = Path(__file__).parents[1] / "fixtures" / "saved"
TEXTS = ["The bank of the river.", "Größe  안녕 🙂", "x" * 60, ""]
TAGS = ["DET", "NOUN", "ADP", "DET", "NOUN", "PUNCT"]


def write(folder: Path) -> None:
    """A biLM, which was learned with, and a tagger that listens to it."""
    nlp = spacy.blank("xx")
    with tempfile.TemporaryDirectory() as weights:
        path = str(write_weights(Path(weights)))
        model = {"weights": path, "initial_state": "warm", "frozen": False}
        nlp.add_pipe("elmo", config={"model": model})
        listener = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "elmo"}
        tagger = nlp.add_pipe("tagger", config={"model": {"tok2vec": listener}})
        for tag in sorted(set(TAGS)):
            tagger.add_label(tag)
        optimizer = nlp.initialize()
        doc = nlp.make_doc(TEXTS[0])
        optimizer.learn_rate = 0.02
        for _ in range(60):
            nlp.update([Example.from_dict(doc.copy(), {"tags": TAGS})], sgd=optimizer)
        folder.mkdir(parents=True, exist_ok=True)
        nlp.to_disk(folder)
        config = folder / "config.cfg"  # without the path of a folder that is gone
        config.write_text(config.read_text("utf-8").replace(path, "weights"), "utf-8")
    docs = list(spacy.load(folder).pipe(TEXTS))
    np.savez_compressed(
        folder / "expected.npz",
        vectors=np.concatenate([doc.tensor for doc in docs]),
        tags=[token.tag_ for doc in docs for token in doc],
    )


if __name__ == "__main__":
    write(FOLDER / __version__)
