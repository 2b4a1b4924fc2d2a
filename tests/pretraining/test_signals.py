from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from spacy_elmo.pretraining.signals import stop_on_signals


@pytest.fixture(autouse=True)
def ctrl_c_as_usual() -> Iterator[None]:
    """In the background of a shell script, processes are started with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_second_signal_stops(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), stop_on_signals(quiet=True):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err == ""


def test_outside_the_main_thread_nothing_is_touched() -> None:
    def run() -> bool:
        with stop_on_signals() as stopped:
            return stopped()

    before = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(run).result()
    assert signal.getsignal(signal.SIGINT) is before
