"""The memory that reading takes."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .helpers import CONFIG, PEAK, write_weights

DATA = os.environ.get("SPACY_ELMO_DATA") or None
RANDOM_WEIGHTS = Path(__file__).parents[2] / "benchmarks" / "speed" / "random_weights.py"
SENTENCES = r"""
from spacy_elmo.text.files import read_lines
from spacy_elmo.text.readers import split_text

text, weights = sys.argv[1:]
lines = read_lines(Path(text))
sentences = [" ".join(words) for words in islice(split_text(spacy.blank("en"), lines), 250)]
nlp = spacy.blank("en")
elmo = nlp.add_pipe("elmo", config={"model": {"weights": weights}})
torch.ones(100, 100) @ torch.ones(100, 100)
forget_peak()
before, start = peak(), time.process_time()
parameters = list(elmo.bilm.model.parameters())
seconds = time.process_time() - start
for _ in nlp.pipe(sentences):  # each Doc is dropped at once
    pass
size = 4 * sum(p.numel() for p in parameters)
print(size, seconds, (peak() - before) / size)
"""


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="needs the folder that SPACY_ELMO_DATA names")
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
def test_reading_takes_the_weights_twice_and_the_layers(tmp_path: Path) -> None:
    subprocess.run([sys.executable, RANDOM_WEIGHTS, tmp_path / "original"], check=True)
    [text] = (Path(DATA or "") / "data" / "lm" / "enwiki").glob("valid*.xz")
    command = [sys.executable, "-c", PEAK + SENTENCES, text, tmp_path / "original"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    size, load_seconds, ratio = map(float, done.stdout.split())
    assert round(size / 1e6) == 374
    # The parameters, the kernel's packed copy of them, and the layers of what is read.
    assert 0.9 < ratio < 3.0 and load_seconds < 5, done.stdout


LONG_DOC = r"""
weights, kind, store_layers = sys.argv[1:]
nlp = spacy.blank("en")
model = {"weights": weights, "batch_words": 1024, "segments": "doc" if kind == "doc" else "auto"}
nlp.add_pipe("elmo", config={"store": ["layers"] * (store_layers == "True"), "model": model})
n_words = 40_000 if kind == "doc" else 100_000  # steps of one token are slow
words = [f"word{i % 1999}" if i % 20 else "." for i in range(n_words)]
if kind == "whitespace":
    words = ["\n"] * len(words)
doc = Doc(nlp.vocab, words=words)
nlp("This loads the weights.")
forget_peak()
before = peak()
nlp(doc)
returned = doc.tensor.nbytes
if store_layers == "True":
    returned += doc._.elmo_layers.nbytes
print((peak() - before) / returned)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
@pytest.mark.parametrize(
    ("kind", "store_layers"),
    [
        ("sentences", False),
        pytest.param("doc", True, marks=pytest.mark.slow),
        ("whitespace", False),
    ],
)
def test_a_long_doc_takes_less_than_twice_what_is_returned(
    tmp_path: Path, kind: str, store_layers: bool
) -> None:
    config = dataclasses.replace(CONFIG, projection_dim=128, dim=128)
    weights = write_weights(tmp_path / "weights", config=config)
    command = [sys.executable, "-c", PEAK + LONG_DOC, str(weights), kind, str(store_layers)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert 0.5 < float(done.stdout) < 2
