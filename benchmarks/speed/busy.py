"""Busy processors, beside which a benchmark measures."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# It also ends if its parent is killed.
BUSY = "import os\nwhile os.getppid() == {}: sum(range(100_000))"


@contextmanager
def busy_processes(n: int) -> Iterator[None]:
    """A context in which so many processes do nothing but use a processor each."""
    command = [sys.executable, "-c", BUSY.format(os.getpid())]
    processes = [subprocess.Popen(command) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
