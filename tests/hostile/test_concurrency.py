"""Threads that share a pipeline, from the first load on; processes that are forked."""

from __future__ import annotations

import os
import subprocess
import sys
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


FORKS = """
import os, signal, torch
from spacy_elmo import LanguageModel
from spacy_elmo.weights.find import load_bilm

torch.randn(2000, 2000) @ torch.randn(2000, 2000)  # starts the threads that a fork lacks
bilm, lm = load_bilm("en_sm"), LanguageModel.load("en_sm")
for call in (
    lambda: load_bilm("en_sm"), torch.no_grad()(lambda: bilm.read([["a", "bank"]])),
    lambda: lm.save("saved"), lambda: lm.fill(["a", "___"], 1),
):
    if (child := os.fork()) == 0:
        signal.alarm(100)
        call()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_what_a_user_has_forked(tmp_path: Path) -> None:
    """Weights of the usual size are read, packed and saved without the parent's threads."""
    variables = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], cwd=tmp_path, env=variables,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["0"] * 4
