"""Does a converted model of ELMoForManyLangs compute what the original computes?

    python benchmarks/peers/many_langs.py [MODEL]

MODEL is a directory of its published files (encoder.pkl, …), by default the tiny one of the tests.
The original reads sentences in an environment of its own, each from a reset state; ours reads what
`elmo convert` makes of the model. Printed is the largest difference of any value of any layer; the
exit status is 1 if it is above 1e-5.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import spacy
from peers import CACHE, HERE, python_of
from spacy.tokens import Doc

TINY = HERE.parents[1] / "tests" / "fixtures" / "many_langs_tiny"


def ours(model: Path, folder: Path, sentences: list[list[str]]) -> list[np.ndarray]:
    """The layers of what `elmo convert` makes of the model, in the package's way."""
    command = [sys.executable, "-m", "spacy", "elmo", "convert", str(model), str(folder / "ours")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    nlp = spacy.blank("xx")
    block = {"@architectures": "spacy-elmo.Elmo.v1", "weights": str(folder / "ours")}
    nlp.add_pipe("elmo", config={"store": ["layers"], "model": block})
    docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences)
    return [doc._.elmo_layers for doc in docs]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, nargs="?", default=TINY)
    args = parser.parse_args()
    file = TINY / "sentences.json"
    sentences = json.loads(file.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as name:
        out, python = Path(name, "theirs.npz"), python_of("elmoformanylangs", CACHE)
        script = HERE / "read_elmoformanylangs.py"
        subprocess.run([python, script, args.model, file, out], check=True)
        theirs, found = np.load(out), ours(args.model, Path(name), sentences)
    difference = max(float(np.abs(x - theirs[f"s{i}"]).max()) for i, x in enumerate(found))
    print(f"{len(sentences)} sentences, largest difference {difference:.1e}")
    return difference > 1e-5


if __name__ == "__main__":
    sys.exit(main())
