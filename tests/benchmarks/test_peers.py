"""The parts of benchmarks/peers that need no environment of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import spacy_elmo

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
def test_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PEERS)
    from peers import OURS, read

    file = tmp_path / "sentences.json"
    file.write_text(json.dumps([["Hello", "!"], ["A", "bank", "."]]), encoding="utf8")
    found = read(OURS, tmp_path, "en_sm", file, out=tmp_path / "layers.npz")
    weights = Path(spacy_elmo.__file__).parent / "models" / "en_sm" / "weights.safetensors"
    assert found["size"] == weights.stat().st_size / 1e6
    assert 50 < found["memory"] < 2000  # MB
    assert min(found[name] for name in ("importing", "loading", "reading", "processor")) > 0
    assert (tmp_path / "layers.npz").exists()


def test_sentences(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text once, whatever task it is of."""
    monkeypatch.syspath_prepend(PEERS)
    from embed import sentences

    found = sentences(data, ["tagger", "parser", "ner"])
    assert found == [
        ["She", "sang", "."],
        ["Dogs", "bark", "at", "me"],
        ["Ann", "Smith", "sang"],
        ["I", "love", "Paris"],
    ]
