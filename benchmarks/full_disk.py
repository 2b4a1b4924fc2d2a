"""Every command that writes files, where the disk is full or may not be written to.

    python benchmarks/full_disk.py --times 50
    python benchmarks/full_disk.py --only encode --times 500

From the n-th operation in the file system on, each that needs space is refused (a full disk, a
quota, a read-only file system, a missing permission), or no file grows past its n-th byte. The
command must end in one error and exit code 1, half-write nothing under its final name, leave no
temporary file, and give the right result when it is repeated with space.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch
from jobs import Trial, limit_file_size, make_jobs, on_operation

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


def main() -> None:
    parser = argparse.ArgumentParser(description="Run commands where the disk is full.")
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
            for seed in range(args.seed, args.seed + args.times):
                trial.prepare()
                fault, code = run_under_fault(trial, random.Random(f"{name} {seed}"))
                counts["refused" if code else "succeeded"] += 1
                if found := find_fault(trial, code):
                    bad += 1
                    print(f"{name}, seed {seed}, {fault}: {found}", flush=True)
            print(f"{name}: {dict(counts)} of {args.times}", flush=True)
    print(f"{bad} faults")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
