"""Stops a run after its current step on Ctrl-C or SIGTERM."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import current_thread, main_thread
from types import FrameType
from typing import Any


@contextmanager
def stop_on_signals(quiet: bool = False) -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C or SIGTERM; a second one stops at once.

    Args:
        quiet: print nothing.

    Yields:
        A function that tells if the first has come.
    """
    received: list[int] = []
    previous: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        restore()
        if not quiet:  # without Python's buffers, which may be in use at this moment
            os.write(2, b"\nStopping after the current step; interrupt again to stop at once\n")

    if current_thread() is main_thread():  # no other thread may set handlers
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, note)
    try:
        yield partial(bool, received)
    finally:
        restore()
