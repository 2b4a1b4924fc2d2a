"""Every command that writes files, killed again and again: is what it leaves whole?

    python benchmarks/reliability/killed.py --times 50
    python benchmarks/reliability/killed.py --only pretrain --times 500

Kills each job (SIGKILL, or SIGXFSZ in the middle of a write) at random places: before the n-th
operation in the file system, at the n-th byte of a file, and after a random time. Then nothing may
be half-written under its final name, and the job, repeated, must give what an undisturbed
one gives, bit for bit, and leave nothing else behind.
"""

from __future__ import annotations

import os
import random
import signal

from jobs import make_jobs
from trials import Trial, limit_file_size, on_operation, run_trials


def kill(trial: Trial, rng: random.Random) -> tuple[str, int]:
    """Run a job until it is killed, if it does not end before; the place, and the exit code."""
    run = trial.job.run
    match rng.choice(("operation", "byte", "time")):
        case "operation":
            n = rng.randint(1, trial.n_operations)
            die = lambda i, _: i == n and os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
            return f"before operation {n}", trial.fork(run, lambda: on_operation(die))
        case "byte":
            n = rng.randrange(trial.n_bytes)
            return f"at byte {n}", trial.fork(run, lambda: limit_file_size(n, signal.SIG_DFL))
        case _:
            seconds = rng.uniform(0, trial.seconds)
            return f"after {seconds:.3f} s", trial.fork(run, kill_after=seconds)


def disturb(trial: Trial, rng: random.Random) -> tuple[str, str, str | None]:
    """Kill a job once; the place, how it ended, and what is wrong after it and its repeat."""
    place, code = kill(trial, rng)
    wrong = trial.fault_in_result() or trial.fault_after_repeat()
    if wrong is None and (files := trial.leftovers()):
        wrong = f"temporary files are left: {files}"
    return place, "killed" if code < 0 else "ended before", wrong


if __name__ == "__main__":
    run_trials("Kill commands, and repeat them.", make_jobs, disturb)
