"""The number of threads of our own passes: chosen, scoped and restored."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spacy_elmo.util import threads as module
from spacy_elmo.util.threads import SMALL_PRODUCT, prefetch_map, threads_for, worker_count

MUCH = SMALL_PRODUCT + 1
N = 4  # threads that PyTorch has, for the tests


@pytest.fixture(autouse=True)
def n_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """PyTorch has N threads, of which the user has chosen nothing."""
    monkeypatch.setattr(module, "IS_CHOSEN", False)
    before = torch.get_num_threads()
    torch.set_num_threads(N)
    yield
    assert torch.get_num_threads() == N
    torch.set_num_threads(before)


def number(work: float, setting: int | None = None) -> int:
    """Threads of a pass."""
    with threads_for(work, setting):
        return torch.get_num_threads()


def test_the_users_number_comes_first() -> None:
    """Without it, small products have one thread, large ones those of PyTorch; and texts are
    divided among the processors, at most eight."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 8
    assert (number(0), number(MUCH), worker_count()) == (1, N, min(N, n, 8))
    assert number(0, 3) == number(MUCH, 3) == worker_count(3) == 3


@pytest.mark.parametrize("setting", [None, 3])
def test_worker_processes_have_one_thread(
    monkeypatch: pytest.MonkeyPatch, setting: int | None
) -> None:
    monkeypatch.setattr("multiprocessing.parent_process", object)
    assert number(MUCH, setting) == worker_count(setting) == 1


def test_the_number_holds_inside_and_is_put_back() -> None:
    with threads_for(MUCH), pytest.raises(ZeroDivisionError), threads_for(0):
        assert torch.get_num_threads() == 1
        _ = 1 / 0
    with pytest.raises(ZeroDivisionError), threads_for(0, 3):
        assert torch.get_num_threads() == 3
        _ = 1 / 0
    assert torch.get_num_threads() == N


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("n_items", [0, 1, 9])
def test_prefetched_results_come_in_order(n: int, n_items: int) -> None:
    """With gradients enabled as they are here."""
    for is_enabled in (True, False):
        with torch.set_grad_enabled(is_enabled):
            ahead = prefetch_map(lambda i: (i * i, torch.is_grad_enabled()), range(n_items), n)
            found = [(item, result()) for item, result in ahead]
        assert found == [(i, (i * i, is_enabled)) for i in range(n_items)]


def run(code: str, **variables: str) -> str:
    """What a Python process prints that has none of the variables, but these."""
    env = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    env |= {"PYTHONPATH": str(Path(__file__).parents[2]), **variables}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
    assert not done.returncode, done.stderr
    return done.stdout


SEEN = """
import spacy, torch
start = torch.get_num_threads()
{prepare}
nlp = spacy.blank("en")
elmo = nlp.add_pipe("elmo", config={{"model": {{"threads": {setting}}}}})
nlp("Loaded.")
seen, n_before = [], torch.get_num_threads()
bilm = elmo.model.get_ref("bilm").shims[0].bilm.model
bilm.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
nlp("Some words. And more.")
assert (seen, n_before, torch.get_num_threads()) == ({expected})
"""


@pytest.mark.parametrize(
    ("prepare", "setting", "variables", "expected"),
    [
        ("", None, {}, "[1], start, start"),
        ("torch.set_num_threads(7)", 3, {}, "[3], 7, 7"),
        ("", None, {"OMP_NUM_THREADS": "2"}, "[start], start, start"),
    ],
    ids=["default", "both", "OMP_NUM_THREADS"],
)
def test_the_component(
    prepare: str, setting: int | None, variables: dict[str, str], expected: str
) -> None:
    run(SEEN.format(prepare=prepare, setting=setting, expected=expected), **variables)


FORK = """
import os, sys
import torch
torch.set_num_threads(4)
{prepare}
n_threads = torch.get_num_threads()
child = os.fork()
if child == 0:
    run()
    os._exit(0 if torch.get_num_threads() == 1 else 3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("child", code, "threads", n_threads, torch.get_num_threads())
"""
COMPONENT = """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("elmo")
text = " ".join(f"word{i}" for i in range(1000))
def run():
    nlp(text)
"""
LANGUAGE_MODEL = """
from spacy_elmo import LanguageModel
lm = LanguageModel.load("en_sm")
def run():
    lm.next_words(["The", "bank"])
"""
USED = "run()"  # the parent has run the model
LOADED = "run(); nlp.remove_pipe('elmo'); nlp.add_pipe('elmo')"  # the child loads it


@pytest.mark.skipif(sys.platform != "linux", reason="forks a process that has threads")
@pytest.mark.parametrize(
    "prepare",
    [
        COMPONENT + USED,
        COMPONENT + LOADED,
        LANGUAGE_MODEL + USED,
    ],
    ids=["component", "loaded-in-the-child", "language-model"],
)
def test_a_forked_process_does_not_wait_for_threads_of_its_parent(prepare: str) -> None:
    assert run(FORK.format(prepare=prepare)) == "child 0 threads 4 4\n"
