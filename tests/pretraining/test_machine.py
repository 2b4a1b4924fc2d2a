from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest
import torch

from spacy_elmo.pretraining.machine import find_device, stop_on_signals


@pytest.fixture(autouse=True)
def ctrl_c_as_usual() -> Iterator[None]:
    """In the background of a shell script, processes are started with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stopped:
        assert not stopped()
        signal.raise_signal(number)
        assert stopped()
    assert signal.getsignal(number) is before
    assert "interrupt again to stop at once" in capfd.readouterr().err


def test_the_second_signal_stops(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), stop_on_signals(quiet=True):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err == ""


def test_outside_the_main_thread_nothing_is_touched() -> None:
    results: list[bool] = []

    def run() -> None:
        with stop_on_signals() as stopped:
            results.append(stopped())

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert results == [False]
    assert signal.getsignal(signal.SIGINT) is before


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match="no device 'gpu'; give 'cpu'"):
        find_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"There is no GPU 0: .* 0 CUDA devices.*--gpu-id"):
        find_device("cuda:0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("cuda:1") == torch.device("cuda:1")
    # With an index: `torch.cuda.set_device`, in the thread that prefetches, takes no other.
    assert find_device("cuda") == torch.device("cuda:0")
    with pytest.raises(ValueError, match=r"There is no GPU 2: .* finds 2 CUDA devices"):
        find_device("cuda:2")
