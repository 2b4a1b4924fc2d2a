"""Threads that share a pipeline, from the first load on; long use."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spacy_elmo.bilm.own_weights import OwnWeights

from ..pipeline.helpers import TEXTS, TOLERANCE, make_nlp, max_difference, vectors_of, write_weights

ROOT = Path(__file__).parents[2]
N_THREADS = 8


def test_the_first_texts_of_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are loaded once, and nobody computes with half of them."""
    weights = write_weights(tmp_path / "weights")
    expected = vectors_of([make_nlp(weights)(text) for text in TEXTS])
    loads: list[str] = []
    load = OwnWeights.load
    monkeypatch.setattr(OwnWeights, "load", lambda self: (loads.append(self.where), load(self))[1])
    for number in range(10):
        nlp, start = make_nlp(weights), threading.Barrier(N_THREADS)

        def read(number: int) -> list:
            start.wait()  # noqa: B023
            return vectors_of([nlp(text) for text in TEXTS])  # noqa: B023

        with ThreadPoolExecutor(N_THREADS) as pool:
            for found in pool.map(read, range(N_THREADS)):
                assert max_difference(found, expected) <= TOLERANCE
        assert len(loads) == number + 1


def benchmark(name: str, *arguments: str) -> str:
    command = [sys.executable, ROOT / "benchmarks" / name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
@pytest.mark.parametrize("zones", [[], ["--zones"]], ids=["no-zones", "zones"])
def test_a_web_service(zones: list[str]) -> None:
    """A sample of `benchmarks/service.py`: vectors as alone, and an answer for everybody."""
    out = benchmark("service.py", "--clients", "200", "--seconds", "5", *zones)
    assert "; 0 failures" in out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
@pytest.mark.parametrize("cache_mb", ["0", "1"])
def test_a_minute_of_mixed_use(cache_mb: str) -> None:
    """A sample of `benchmarks/soak.py`; a minute has few rounds, so that noise gets some room."""
    benchmark("soak.py", "--minutes", "1", "--cache-mb", cache_mb, "--most", "4")
