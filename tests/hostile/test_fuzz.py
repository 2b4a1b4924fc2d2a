"""A sample of the benchmarks that damage files, kill commands and fill disks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RELIABILITY = Path(__file__).parents[2] / "benchmarks" / "reliability"


def benchmark(name: str, *arguments: str) -> None:
    command = [sys.executable, RELIABILITY / name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_damaged_files() -> None:
    pytest.importorskip("h5py")
    benchmark("hostile.py", "--inputs", "20")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("fault", ["killed", "full"])
def test_commands_that_are_interrupted(fault: str) -> None:
    pytest.importorskip("pyarrow")
    benchmark("killed.py", "--times", "3", "--fault", fault)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
@pytest.mark.parametrize("cache_mb", ["0", "1"])
def test_a_minute_of_mixed_use(cache_mb: str) -> None:
    """A minute has few rounds, so that noise gets some room."""
    benchmark("soak.py", "--minutes", "1", "--cache-mb", cache_mb, "--most", "4")
