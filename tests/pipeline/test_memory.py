"""The memory that reading takes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from .helpers import CONFIG, write_weights

SCRIPT = r"""
import sys
from pathlib import Path

import spacy
from spacy.tokens import Doc

def peak():
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) * 1024

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
Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
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
    command = [sys.executable, "-c", SCRIPT, str(weights), kind, str(store_layers)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert 0.5 < float(done.stdout) < 2
