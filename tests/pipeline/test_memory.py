"""Memory at full size, measured by the benchmark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = os.environ.get("SPACY_ELMO_DATA")
ROOT = Path(__file__).parents[2]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="needs the folder that SPACY_ELMO_DATA names")
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
def test_reading_takes_less_than_twice_the_weights(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    tool = Path(DATA or "") / "tools" / "make_random_bilm.py"
    subprocess.run([sys.executable, tool, "original", tmp_path / "original"], check=True)
    [text] = (Path(DATA or "") / "data" / "lm" / "enwiki").glob("valid*.xz")
    command = [sys.executable, ROOT / "benchmarks" / "memory.py", text, tmp_path / "original"]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cells = table.splitlines()[-1].strip("| ").split(" | ")
    assert cells[:2] == ["original", "374"]
    load_seconds, ratio = float(cells[2]), float(cells[-1])
    assert 0.9 < ratio < 2, table
    assert load_seconds < 5, table
