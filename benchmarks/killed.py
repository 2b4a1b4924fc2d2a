"""Every command that writes files, killed again and again: is what it leaves whole?

    python benchmarks/killed.py --times 50
    python benchmarks/killed.py --only pretrain --times 500

Kills each job (SIGKILL, or SIGXFSZ in the middle of a write) at random places: before the n-th
operation in the file system, at the n-th byte of a file, and after a random time. Then nothing may
be half-written under its final name, and the job, repeated, must give what an undisturbed
one gives, bit for bit, and leave nothing else behind.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch
from jobs import Trial, limit_file_size, make_jobs, on_operation


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


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill commands, and repeat them.")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--only", help="one job")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = make_jobs(Path(folder) / "sound")
        for name in [args.only] if args.only else jobs:
            trial, counts = Trial(jobs[name], Path(folder) / name), Counter[str]()
            for number in range(args.times):
                rng = random.Random(f"{name} {args.seed + number}")
                trial.prepare()
                place, code = kill(trial, rng)
                counts["killed" if code < 0 else "ended before"] += 1
                fault = trial.fault_in_result() or trial.fault_after_repeat()
                if fault is None and (files := trial.leftovers()):
                    fault = f"temporary files are left: {files}"
                if fault:
                    bad += 1
                    print(f"{name}, seed {args.seed + number}, {place}: {fault}", flush=True)
            print(f"{name}: {dict(counts)} of {args.times}", flush=True)
    print(f"{bad} faults")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
