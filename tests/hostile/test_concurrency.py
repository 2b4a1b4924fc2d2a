"""Threads that share a pipeline, from the first load on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.bilm.model import BiLM
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

    def slowly(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def slow_call(*given: Any) -> Any:
            done.append(name)
            time.sleep(0.1)
            return call(*given)

        return slow_call

    monkeypatch.setattr(Weights, "load", slowly("loaded", Weights.load))
    monkeypatch.setattr(BiLM, "compute_warm_state", slowly("computed", BiLM.compute_warm_state))
    for number in range(1, 6):
        nlp, start = make_nlp(weights), threading.Barrier(N_THREADS)

        def read(_: int) -> list:
            start.wait()  # noqa: B023
            return vectors_of([nlp(text) for text in TEXTS])  # noqa: B023

        with ThreadPoolExecutor(N_THREADS) as pool:
            for found in pool.map(read, range(N_THREADS)):
                assert max_difference(found, expected) <= TOLERANCE
        assert done == ["loaded", "computed"] * number
