from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_damaged_files() -> None:
    """A sample of `benchmarks/hostile.py`, each input in a child of limited memory and time."""
    pytest.importorskip("h5py")
    command = [sys.executable, ROOT / "benchmarks" / "hostile.py", "--inputs", "240"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout
