"""Threads that share a pipeline, from the first load on; a fork meanwhile; long use."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from spacy_elmo.bilm.model import BiLM, State
from spacy_elmo.weights.native import Weights

from ..pipeline.helpers import (
    CONFIG,
    TEXTS,
    TOLERANCE,
    make_nlp,
    max_difference,
    vectors_of,
    write_weights,
)

N_THREADS = 8


def test_the_first_texts_of_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are loaded once, a warm state is computed once, and nobody computes with half of
    them."""
    config = replace(CONFIG, initial_state="warm")
    weights = write_weights(tmp_path / "weights", config=config)
    expected = vectors_of([make_nlp(weights)(text) for text in TEXTS])
    done: list[str] = []
    load, compute = Weights.load, BiLM.compute_warm_state

    def load_and_note(weights: Weights) -> BiLM:
        done.append("loaded")
        return load(weights)

    def compute_slowly(model: BiLM) -> State:
        done.append("computed")
        time.sleep(0.1)
        return compute(model)

    monkeypatch.setattr(Weights, "load", load_and_note)
    monkeypatch.setattr(BiLM, "compute_warm_state", compute_slowly)
    for number in range(1, 6):
        nlp, start = make_nlp(weights), threading.Barrier(N_THREADS)

        def read(_: int) -> list:
            start.wait()  # noqa: B023
            return vectors_of([nlp(text) for text in TEXTS])  # noqa: B023

        with ThreadPoolExecutor(N_THREADS) as pool:
            for found in pool.map(read, range(N_THREADS)):
                assert max_difference(found, expected) <= TOLERANCE
        assert done == ["loaded", "computed"] * number


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process that has threads")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_does_not_wait_while_another_thread_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp, inside, leave = make_nlp(write_weights(tmp_path / "weights")), Event(), Event()

    def wait(weights: Weights) -> None:
        inside.set()
        assert leave.wait(60)
        raise TimeoutError

    monkeypatch.setattr(Weights, "load", wait)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(nlp, TEXTS[0])
        assert inside.wait(60)
        timer = threading.Timer(30, leave.set)
        timer.start()
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert not leave.is_set()
        timer.cancel()
        leave.set()
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert isinstance(reading.exception(60), TimeoutError)
