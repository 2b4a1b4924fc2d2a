"""Threads that share a pipeline, from the first load on; a fork meanwhile; long use."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, Literal

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.model import BiLM, State
from spacy_elmo.weights.find import load_bilm
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
    """The weights are loaded once, and nobody computes with half of them."""
    weights = write_weights(tmp_path / "weights")
    expected = vectors_of([make_nlp(weights)(text) for text in TEXTS])
    loads: list[str] = []
    load = Weights.load
    monkeypatch.setattr(Weights, "load", lambda self: (loads.append(self.where), load(self))[1])
    for number in range(10):
        nlp, start = make_nlp(weights), threading.Barrier(N_THREADS)

        def read(number: int) -> list:
            start.wait()  # noqa: B023
            return vectors_of([nlp(text) for text in TEXTS])  # noqa: B023

        with ThreadPoolExecutor(N_THREADS) as pool:
            for found in pool.map(read, range(N_THREADS)):
                assert max_difference(found, expected) <= TOLERANCE
        assert len(loads) == number + 1


def test_the_first_warm_state_of_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is computed once."""
    config = replace(CONFIG, initial_state="warm")
    weights = write_weights(tmp_path / "weights", config=config)
    settings = {"initial_state": "warm"}
    expected = vectors_of([make_nlp(weights, **settings)(text) for text in TEXTS])
    warm = load_bilm(weights).initial_state("warm")
    computed: list[BiLM] = []
    compute = BiLM.compute_warm_state

    def compute_slowly(model: BiLM) -> State:
        computed.append(model)
        time.sleep(0.1)
        return compute(model)

    monkeypatch.setattr(BiLM, "compute_warm_state", compute_slowly)
    nlp, start = make_nlp(weights, **settings), threading.Barrier(N_THREADS)

    def read(number: int) -> list:
        start.wait()
        return vectors_of([nlp(text) for text in TEXTS])

    with ThreadPoolExecutor(N_THREADS) as pool:
        for found in pool.map(read, range(N_THREADS)):
            assert max_difference(found, expected) <= TOLERANCE
    assert len(computed) == 1
    assert all(map(torch.equal, computed[0].initial_state("warm"), warm))


def test_each_thread_keeps_its_own_handling_of_underflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where both read at the same time, and the first to begin is the first to end."""
    nlp, read = make_nlp(write_weights(tmp_path / "weights")), BiLM.read
    nlp("A text.")
    inside, ended = {"raise": Event(), "warn": Event()}, Event()

    def wait(model: BiLM, *given: Any, **settings: Any) -> Any:
        mine = "raise" if not inside["raise"].is_set() else "warn"
        inside[mine].set()
        assert (inside["warn"] if mine == "raise" else ended).wait(60)
        return read(model, *given, **settings)

    def kept(handling: Literal["raise", "warn"]) -> str:
        assert handling == "raise" or inside["raise"].wait(60)
        with np.errstate(under=handling):
            nlp("A text.")
            ended.set()
            return np.geterr()["under"]

    monkeypatch.setattr(BiLM, "read", wait)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(kept, ("raise", "warn"))) == ["raise", "warn"]


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
