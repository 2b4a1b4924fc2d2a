"""Every command that writes files, where the disk is full or may not be written to.

    python benchmarks/reliability/full_disk.py --times 50
    python benchmarks/reliability/full_disk.py --only encode-npy --times 500

From the n-th operation in the file system on, each that needs space is refused (a full disk, a
quota, a read-only file system, a missing permission), or no file grows past its n-th byte. The
command must end in one error and exit code 1, half-write nothing under its final name, leave no
temporary file, and give the right result when it is repeated with space.
"""

from __future__ import annotations

import errno
import os
import random
import signal

from jobs import make_jobs
from trials import Trial, limit_file_size, on_operation, run_trials

ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


def refuse_from(n: int, code: int) -> None:
    """No file is opened for writing, and no folder made, from the n-th operation on."""

    def refuse(i: int, event: str) -> None:
        if i >= n and event in ("open", "os.mkdir"):
            raise OSError(code, os.strerror(code))

    on_operation(refuse)


def run_under_fault(trial: Trial, rng: random.Random) -> tuple[str, int]:
    """The fault, and the exit code under it."""
    run = trial.job.run
    if rng.random() < 0.5:
        n, code = rng.randint(1, trial.n_operations), rng.choice(ERRORS)
        fault = lambda: refuse_from(n, code)  # noqa: E731
        return f"{os.strerror(code)}, from operation {n} on", trial.fork(run, fault)
    n = rng.randrange(trial.n_bytes)
    return f"full from byte {n} on", trial.fork(run, lambda: limit_file_size(n, signal.SIG_IGN))


def find_fault(trial: Trial, code: int) -> str | None:
    """What is wrong after a run under a fault."""
    output = trial.output()
    if code not in (0, 1) or "Traceback" in output:
        return f"exit code {code}: {output[-700:]}"
    if fault := trial.fault_in_result():
        return fault
    parts = [] if trial.job.resumable else trial.parts()
    if parts or trial.leftovers():
        return f"temporary files are left: {[*parts, *trial.leftovers()]}"
    return trial.fault_after_repeat()


def disturb(trial: Trial, rng: random.Random) -> tuple[str, str, str | None]:
    """Run a job under a fault once; the fault, how it ended, and what is wrong afterwards."""
    fault, code = run_under_fault(trial, rng)
    return fault, "refused" if code else "succeeded", find_fault(trial, code)


if __name__ == "__main__":
    run_trials("Run commands where the disk is full.", make_jobs, disturb)
