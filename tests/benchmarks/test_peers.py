"""The parts of benchmarks/peers that need no environment of their own."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import spacy_elmo
from spacy_elmo.text.shards import write_shards

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


def load_speed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script speed.py under another name: the project has one of this name, too."""
    monkeypatch.syspath_prepend(PEERS)
    spec = spec_from_file_location("speed_of_peers", PEERS / "speed.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


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


FAST, SLOW = "int8", "minilm"
SECONDS = {  # by side and size of batches
    (FAST, 8): [1.0, 2.0, 1.5],
    (FAST, 32): [0.5, 0.5, 0.5],
    ("float32", 8): [1.0, 1.0, 1.0],
    ("float32", 32): [2.0, 2.0, 2.0],
    (SLOW, 8): [4.0, 4.0, 4.0],
    (SLOW, 32): [5.0, 5.0, 5.0],
    ("minilm, onnx", 8): [1.0, 2.0, 0.5],
    ("minilm, onnx", 32): [3.0, 3.0, 3.0],
}


def run_of(seconds: float) -> dict[str, object]:
    costs = {"importing": 1.0, "loading": 0.5, "memory": 99.6, "size": 8.44}
    return {"version": "1.0", "reading": 2 * seconds, "processor": seconds, **costs}


def test_table(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(dict.fromkeys(name for name, _ in SECONDS))
    measured = {
        size: {name: [run_of(x) for x in SECONDS[name, size]] for name in names} for size in (8, 32)
    }
    table = load_speed(monkeypatch).tabulate(measured, 100, "processor")
    sizes = {name: row["batches of"] for name, row in table.items()}
    assert sizes == {FAST: 32, "float32": 8, SLOW: 8, "minilm, onnx": 8}
    assert {name: row["fastest over"] for name, row in table.items()} == {
        FAST: 1, "float32": 2, SLOW: 8, "minilm, onnx": 2
    }  # fmt: skip
    row = table["minilm, onnx"]
    assert row["words/s"] == 50 and row["start (s)"] == 1.5
    assert row["memory (MB)"] == 100 and row["weights (MB)"] == 8.4


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
def test_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours alone; what is printed is what is written."""
    monkeypatch.syspath_prepend(PEERS)
    text, out = tmp_path / "text.txt", tmp_path / "speed.json"
    text.write_text("A bank is here. So it is!\n\nNo bank.\n", encoding="utf8")
    options = ["--runs", "1", "--settings", "float32", "--batch-sizes", "2"]
    monkeypatch.setattr(sys, "argv", ["speed", str(text), "--peers", *options, "--out", str(out)])
    load_speed(monkeypatch).main()
    found = json.loads(out.read_text(encoding="utf8"))
    assert found["words"] == 12
    row = found["each at its best"]["float32"]
    assert f"| float32 | {row['version']} | 2 | {row['words/s']:,} |" in capsys.readouterr().out


def test_words_without_pieces_teach_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their vectors are zeros; and shards are read as `elmo tokenize` writes them."""
    monkeypatch.syspath_prepend(PEERS)
    stub = SimpleNamespace(AutoModel=None, AutoTokenizer=None)
    monkeypatch.setitem(sys.modules, "transformers", stub)
    script = import_module("teach_minilm")
    layers = torch.rand(20, 3 * 384) + 1
    layers[7] = 0
    arrays = script.principal_components(layers)
    rows = script.reduce(layers, {name: torch.from_numpy(each) for name, each in arrays.items()})
    assert rows.shape == (20, script.SIZE)
    assert [i for i, row in enumerate(rows) if not row.any()] == [7]
    write_shards([["a", "b"], ["c"], ["d"]], tmp_path)
    assert list(script.read_sentences(sorted(tmp_path.glob("*.gz")), 2)) == [["a", "b"], ["d"]]
