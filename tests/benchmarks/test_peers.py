"""The part of benchmarks/peers that needs no environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "peers" / "speed.py"


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
def test_speed(tmp_path: Path) -> None:
    """Ours alone; what is printed is what is written."""
    text, out = tmp_path / "text.txt", tmp_path / "speed.json"
    text.write_text("A bank is here. So it is!\n\nNo bank.\n", encoding="utf8")
    options = ["--runs", "1", "--settings", "float32", "--batch-sizes", "2", "--out", str(out)]
    command = [sys.executable, str(SCRIPT), str(text), "--peers", *options]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    found = json.loads(out.read_text(encoding="utf8"))
    assert found["words"] == 12
    row = found["each at its best"]["float32"]
    assert f"| float32 | {row['version']} | 2 | {row['words/s']:,} |" in printed
