"""The number of threads of our own passes: chosen, scoped and restored."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.util import threads as module
from spacy_elmo.util.threads import (
    WORK_PER_THREAD,
    Process,
    choose_threads,
    results_ahead,
    steady_threads,
    threads,
    threads_for,
)

MUCH = 100 * WORK_PER_THREAD
N = 4  # threads that PyTorch starts with, for the tests


def make_process(**changes: Any) -> Process:
    """Not forked, on a machine with N idle processors."""
    idle = Process(False, False, False, N, set(), lambda: float(N))
    return idle._replace(**changes)


def never() -> float:
    raise AssertionError("the load was measured for nothing")


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process as `make_process` has it."""
    process = make_process()
    monkeypatch.setattr(module, "_process", lambda number: process)
    before = torch.get_num_threads()
    torch.set_num_threads(N)
    yield
    assert torch.get_num_threads() == N
    assert not process.passes
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("work", "free", "expected"),
    [
        (MUCH, 4.0, 4),
        (MUCH, 3.8, 4),  # others use a fifth of a processor
        (MUCH, 2.5, 2),
        (MUCH, 0.0, 1),
        (MUCH, 64.0, 4),  # no more than PyTorch's own
        (3 * WORK_PER_THREAD, 4.0, 3),
        (2 * WORK_PER_THREAD, 4.0, 2),
    ],
)
def test_many_threads_need_much_work_and_free_processors(
    work: float, free: float, expected: int
) -> None:
    assert choose_threads(work, make_process(free=lambda: free), N) == expected


@pytest.mark.parametrize("work", [0, 1e6, 2 * WORK_PER_THREAD - 1])
def test_small_work_has_one_thread_and_measures_no_load(work: float) -> None:
    assert choose_threads(work, make_process(free=never), N) == 1


@pytest.mark.parametrize(("n_passes", "expected"), [(1, 4), (2, 2), (3, 1), (9, 1)])
def test_passes_of_several_threads_share_the_processors(n_passes: int, expected: int) -> None:
    process = make_process(passes={object() for _ in range(n_passes)})
    assert choose_threads(MUCH, process, N) == expected


@pytest.mark.parametrize("work", [0, MUCH])
def test_what_the_user_chose_wins(work: float) -> None:
    busy = make_process(free=never)
    for n in (1, 3, 9):
        assert choose_threads(work, busy, n) == n  # torch.set_num_threads
        assert choose_threads(work, busy, N, setting=n) == n
        assert choose_threads(work, busy, 2, setting=n) == n
        assert choose_threads(work, busy._replace(has_variables=True), n) == n
        assert choose_threads(work, busy._replace(is_worker=True), N, setting=n) == n
    assert choose_threads(work, busy._replace(has_variables=True), N) == N


def test_workers_have_one_thread_and_forked_processes_never_more() -> None:
    worker, forked = make_process(is_worker=True, free=never), make_process(is_forked=True)
    assert choose_threads(MUCH, worker, N) == 1
    assert choose_threads(MUCH, worker, 2) == 2  # chosen in the worker
    assert choose_threads(MUCH, forked, N) == 1
    assert choose_threads(MUCH, forked._replace(has_variables=True), 3, setting=2) == 1


def test_the_number_holds_inside_and_is_restored(idle: None) -> None:
    most = module._runtime().get_most
    with threads_for(0):
        assert torch.get_num_threads() == most() == 1
    assert torch.get_num_threads() == most() == N
    with threads_for(2 * WORK_PER_THREAD):
        assert torch.get_num_threads() == most() == 2
    with threads_for(MUCH), pytest.raises(ZeroDivisionError), threads_for(0):
        assert torch.get_num_threads() == 1
        _ = 1 / 0
    with pytest.raises(ZeroDivisionError), threads(3):
        assert torch.get_num_threads() == most() == 3
        _ = 1 / 0
    assert torch.get_num_threads() == most() == N


def test_passes_inside_choose_anew_but_not_inside_a_fixed_number(idle: None) -> None:
    with threads_for(0):
        with threads_for(MUCH):
            assert torch.get_num_threads() == N
            with threads_for(0, setting=2):
                assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    with threads(3), threads_for(0), threads_for(MUCH, setting=2):
        assert torch.get_num_threads() == 3


def test_long_work_has_the_usable_processors_whatever_the_load(
    idle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = make_process(free=never, passes={object(), object()})
    monkeypatch.setattr(module, "_process", lambda number: busy)
    for usable, expected in [(2.0, 2), (1.5, 1), (64.0, N), (0.5, 1)]:
        monkeypatch.setattr(module, "usable_processors", lambda usable=usable: usable)
        assert steady_threads() == expected
    torch.set_num_threads(3)
    assert steady_threads() == 3
    torch.set_num_threads(N)


@pytest.mark.skipif(sys.platform != "linux", reason="OpenMP's functions are found on Linux")
def test_other_threads_keep_their_number(idle: None) -> None:
    entered, ask = Event(), Event()

    def used_before() -> tuple[int, int]:
        first = torch.get_num_threads()
        entered.set()
        ask.wait(60)
        return first, torch.get_num_threads()

    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(used_before)
        assert entered.wait(60)
        with threads_for(0):
            new = pool.submit(torch.get_num_threads)
            assert new.result(60) == N  # a thread that first uses PyTorch during the pass
            ask.set()
            assert other.result(60) == (N, N)
            assert torch.get_num_threads() == 1


def watch(model: BiLM) -> list[int]:
    """The numbers of threads that a biLM's LSTM layers will compute on."""
    seen: list[int] = []
    model.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
    return seen


@torch.no_grad()
def test_results_do_not_depend_on_the_number(idle: None) -> None:
    torch.manual_seed(0)
    model = BiLM(BiLMConfig(((1, 16), (3, 16)), 32, 64, n_layers=2)).eval()
    sentences = [[f"word{(i * j) % 97}" for j in range(20)] for i in range(60)]
    seen, results = watch(model), []
    for n in (1, 2, 3):
        model.n_threads = n
        model.clear_caches()
        layers, _ = model.read(sentences)
        results.append(torch.cat(layers, dim=1).numpy())
    assert set(seen) == {1, 2, 3}
    assert max(np.abs(result - results[0]).max() for result in results) <= 1e-5


@torch.no_grad()
@pytest.mark.parametrize("compiled", [False, True])
def test_sentences_are_divided_among_threads(
    idle: None, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    """Each computes on one; the states come back too, and an error of one is raised."""
    torch.manual_seed(0)
    model = BiLM(BiLMConfig(((1, 16), (3, 16)), 32, 64, n_layers=2), compiled=compiled).eval()
    sentences = [[f"word{(i * j) % 97}" for j in range(i % 23)] for i in range(60)]
    expected, (h, c) = model.read(sentences)
    monkeypatch.setattr("spacy_elmo.bilm.model.LAYER_WORK_PER_THREAD", 1)
    seen, model.n_threads = watch(model), 3
    with torch.inference_mode():
        layers, (h_divided, c_divided) = model.read(sentences)
    assert seen == [1, 1, 1]
    for one, other in [*zip(layers, expected, strict=True), (h_divided, h), (c_divided, c)]:
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
    model.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.read(sentences)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("n_items", [0, 1, 2, 9])
def test_results_ahead_come_in_order(n: int, n_items: int) -> None:
    found = [(item, result()) for item, result in results_ahead(lambda i: i * i, range(n_items), n)]
    assert found == [(i, i * i) for i in range(n_items)]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("n_items", [0, 1, 4])
def test_an_error_of_the_items_comes_after_the_results_before_it(n: int, n_items: int) -> None:
    def items() -> Iterator[int]:
        yield from range(n_items)
        raise OSError("the stream broke")

    found = []
    with pytest.raises(OSError, match="the stream broke"):
        for _, result in results_ahead(lambda i: i, items(), n):
            found.append(result())
    assert found == list(range(n_items))


def test_an_error_of_one_result_leaves_the_others() -> None:
    found: list[float | None] = []
    for _, result in results_ahead(lambda i: 1 / i, [1, 0, 2, 4], 2):
        try:
            found.append(result())
        except ZeroDivisionError:
            found.append(None)
    assert found == [1, None, 0.5, 0.25]


def test_nothing_is_computed_behind_the_back_of_who_stops() -> None:
    running: list[int] = []

    def slow(item: int) -> int:
        running.append(item)
        time.sleep(0.2)
        running.remove(item)
        return item

    ahead = results_ahead(slow, range(9), 2)
    next(ahead)
    ahead.close()  # type: ignore[attr-defined]
    assert running == []


@torch.no_grad()
def test_a_pass_has_threads_for_its_own_work(idle: None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = BiLM(BiLMConfig(((1, 4),), 8, 16)).eval()
    seen, sentence = watch(model), ["one", "two", "three"]
    monkeypatch.setattr(module, "WORK_PER_THREAD", 4 * model.config.layer_size)
    model.read([sentence])
    model.read([sentence] * 8)
    model.read([sentence] * 8 + [["long"] * 200])  # few sentences in most of its steps
    model.read([sentence] * 100)
    assert seen == [1, 2, 1, N]


def run(script: str, *arguments: str, **variables: str) -> str:
    """What a Python process prints that has none of the variables, but these."""
    env = {name: value for name, value in os.environ.items() if name not in module.VARIABLES}
    env |= {"PYTHONPATH": str(Path(__file__).parents[2]), **variables}
    command = [sys.executable, *([script] if script.endswith(".py") else ["-c", script])]
    process = subprocess.Popen(
        [*command, *arguments],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, errors = process.communicate(timeout=200)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its children too
    assert not process.returncode, errors
    return out


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
        ("", 3, {}, "[3], start, start"),
        ("torch.set_num_threads(7)", None, {}, "[7], 7, 7"),
        ("torch.set_num_threads(7)", 3, {}, "[3], 7, 7"),
        ("", None, {"OMP_NUM_THREADS": "2"}, "[start], start, start"),
        ("", None, {"MKL_NUM_THREADS": "2"}, "[start], start, start"),
    ],
    ids=["default", "setting", "set_num_threads", "both", "OMP_NUM_THREADS", "MKL_NUM_THREADS"],
)
def test_the_component(
    prepare: str, setting: int | None, variables: dict[str, str], expected: str
) -> None:
    run(SEEN.format(prepare=prepare, setting=setting, expected=expected), **variables)


SPAWNED = """
import multiprocessing, spacy, torch
def work():
    torch.set_num_threads(5)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp("Some words.")
    print(torch.get_num_threads())
def default(start):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp("Some words.")
    print(torch.get_num_threads() == start)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for target, arguments in [(work, ()), (default, (torch.get_num_threads(),))]:
        child = context.Process(target=target, args=arguments)
        child.start()
        child.join()
"""


def test_a_spawned_process_keeps_its_number(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPAWNED)
    assert run(str(script)) == "5\nTrue\n"


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
LAYER = """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("{factory}")
text = " ".join(f"word{{i}}" for i in range(1000))
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
        LAYER.format(factory="elmo") + USED,
        LAYER.format(factory="elmo") + LOADED,
        LAYER.format(factory="elmo_surprisal") + USED,
        LANGUAGE_MODEL + USED,
    ],
    ids=["component", "loaded-in-the-child", "surprisal", "language-model"],
)
def test_a_forked_process_does_not_wait_for_threads_of_its_parent(prepare: str) -> None:
    assert run(FORK.format(prepare=prepare)) == "child 0 threads 4 4\n"
