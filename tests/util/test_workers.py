"""Worker processes, however they are started."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacy_elmo.util.workers import map_in_processes

SCRIPT = """
import multiprocessing

from spacy_elmo.util.workers import map_in_processes

def run():
    if multiprocessing.get_start_method(allow_none=True) != {method!r}:
        multiprocessing.set_start_method({method!r})
    print(list(map_in_processes(abs, [(i,) for i in range(-3, 3)], 2)))

{guard}
    run()
"""
METHODS = [name for name in multiprocessing.get_all_start_methods() if name != "fork"]


def run(path: Path, method: str, guard: str, first: str = "") -> subprocess.CompletedProcess[str]:
    path.write_text(first + SCRIPT.format(method=method, guard=guard))
    command = [sys.executable, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("method", METHODS)
def test_a_main_guard(method: str, tmp_path: Path) -> None:
    """Without it, an error shows what is missing."""
    done = run(tmp_path / "script.py", method, "if True:")
    said = "ValueError: No process has started: each imports the script"
    assert done.returncode == 1 and said in done.stderr
    guard = "if __name__ == '__main__':"
    assert guard in done.stderr.rpartition(said)[2]
    done = run(tmp_path / "script.py", method, guard)
    assert done.stdout == "[3, 2, 1, 0, 1, 2]\n", done.stderr


@pytest.mark.skipif("forkserver" not in METHODS, reason="there is no server that forks")
def test_a_server_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of Python 3.14, which imports the script before it forks."""
    (tmp_path / "ends.py").write_text("import os; os._exit(1)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    first = "import multiprocessing\nmultiprocessing.set_forkserver_preload(['ends'])\n"
    done = run(tmp_path / "script.py", "forkserver", "if __name__ == '__main__':", first)
    assert "ValueError: No process has started" in done.stderr and done.returncode == 1


def kill(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    return number


@pytest.fixture
def handler_that_exits() -> Iterator[None]:
    """This process raises SystemExit at SIGTERM, as Ray's init makes it."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handler_that_exits")
def test_a_process_that_is_killed() -> None:
    with pytest.raises(ValueError, match="A process was killed; perhaps there was not enough mem"):
        list(map_in_processes(kill, [(number,) for number in range(5)], 2))


def fail(error: Exception) -> None:
    raise error


def test_an_error_of_the_function_is_its_own() -> None:
    with pytest.raises(EOFError, match="of a file"):
        list(map_in_processes(fail, [(EOFError("of a file"),)], 2))
