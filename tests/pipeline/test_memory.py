"""Memory at full size, measured by the benchmark."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .helpers import CONFIG, write_weights

DATA = os.environ.get("SPACY_ELMO_DATA")
ROOT = Path(__file__).parents[2]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="needs the folder that SPACY_ELMO_DATA names")
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
def test_reading_takes_less_than_twice_the_weights(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    tool = Path(DATA or "") / "tools" / "make_random_bilm.py"
    subprocess.run([sys.executable, tool, "original", tmp_path / "published"], check=True)
    convert = [sys.executable, "-m", "spacy", "elmo", "convert"]
    subprocess.run([*convert, tmp_path / "published", tmp_path / "original"], check=True)
    [text] = (Path(DATA or "") / "data" / "lm" / "enwiki").glob("valid*.xz")
    script, weights = ROOT / "benchmarks" / "speed" / "memory.py", tmp_path / "original"
    command = [sys.executable, script, text, weights, "--words", "6000"]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cells = table.splitlines()[-1].strip("| ").split(" | ")
    assert cells[:2] == ["original", "374"]
    load_seconds, ratio = float(cells[2]), float(cells[-1])
    assert 0.9 < ratio < 2, table
    assert load_seconds < 5, table


LONG_DOC = r"""
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
words = [f"word{i % 1999}" if i % 20 else "." for i in range(100_000)]
if kind == "whitespace":
    words = ["\n"] * len(words)
doc = Doc(nlp.vocab, words=words)
nlp("This loads the weights.")
Path("/proc/self/clear_refs").write_text("5")
before = peak()
nlp(doc)
returned = doc.tensor.nbytes
if store_layers == "True":
    returned += doc._.elmo_layers.nbytes
print((peak() - before) / returned)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
@pytest.mark.parametrize(
    ("kind", "store_layers"), [("sentences", False), ("doc", True), ("whitespace", False)]
)
def test_a_long_doc_takes_less_than_twice_what_is_returned(
    tmp_path: Path, kind: str, store_layers: bool
) -> None:
    config = dataclasses.replace(CONFIG, projection_dim=128, dim=128)
    weights = write_weights(tmp_path / "weights", config=config)
    command = [sys.executable, "-c", LONG_DOC, str(weights), kind, str(store_layers)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads of a busy machine wait for each other
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    assert 0.5 < float(done.stdout) < 2
