"""Stops a run after its current step on Ctrl-C or SIGTERM."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import current_thread, main_thread
from types import FrameType


@contextmanager
def stop_on_signals(quiet: bool = False) -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C or SIGTERM; a second one stops at once.

    Args:
        quiet: print nothing.

    Yields:
        A function that tells if the first has come.
    """
    received: list[int] = []
    with ExitStack() as handlers:  # which it puts back

        def note(number: int, frame: FrameType | None) -> None:
            received.append(number)
            handlers.close()
            if not quiet:  # without Python's buffers, which may be in use at this moment
                os.write(2, b"\nStopping after the current step; interrupt again to stop at once\n")

        if current_thread() is main_thread():  # no other thread may set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                handlers.callback(signal.signal, number, signal.signal(number, note))
        yield partial(bool, received)
