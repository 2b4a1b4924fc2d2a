"""The parts of benchmarks/peers that need no environment of their own."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import spacy_elmo

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
    found = read(OURS, "en_sm", file, out=tmp_path / "layers.npz")
    weights = Path(spacy_elmo.__file__).parent / "models" / "en_sm" / "weights.safetensors"
    assert found["size"] == weights.stat().st_size / 1e6
    assert 50 < found["memory"] < 2000  # MB
    assert min(found[name] for name in ("importing", "loading", "reading", "processor")) > 0
    assert (tmp_path / "layers.npz").exists()


FAST, SLOW = "int8", "minilm"


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
