"""Jobs that run in forked processes under a fault, and what must hold afterwards.

For `killed.py` and `full_disk.py`. A job writes into a room of its own. Its result is compared with
that of an undisturbed run: every name, and the content of every file that does not depend on time.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import os
import random
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from spacy_elmo.pretraining.state import CHECKPOINT
from spacy_elmo.util.files import present_directory

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
OPERATIONS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate"}
TIMED = {"log.jsonl", CHECKPOINT}  # they contain times


@dataclass
class Job:
    """A command on small data.

    Attributes:
        run: does it, in a room.
        repeat: does it again after a fault.
        names: of the files and directories in the room that must be whole whenever they exist.
        before: puts into the room what the job replaces.
        check: raises an error if one of the names is not whole; None compares it with the result.
        resumable: a failure may leave more than the names, to continue from.
    """

    run: Callable[[Path], None]
    repeat: Callable[[Path], None]
    names: tuple[str, ...]
    before: Callable[[Path], None] = lambda room: None
    check: Callable[[Path], None] | None = None
    resumable: bool = False


def digest(room: Path) -> dict[str, str]:
    """All files in a room; of those that contain times only the names."""
    return {
        str(file.relative_to(room)): _digest_file(file)
        for file in room.rglob("*")
        if file.is_file()
    }


def _digest_file(file: Path) -> str:
    if file.name in TIMED or file.name.startswith("checkpoint-"):
        return ""
    data = file.read_bytes()
    with contextlib.suppress(EOFError, OSError, tarfile.TarError):  # half of one stays as it is
        if file.suffix == ".gz":  # its header has a time
            data = gzip.decompress(data)
        if file.name.endswith(".tar.gz"):
            with tarfile.open(fileobj=io.BytesIO(data)) as members:
                data = repr(sorted((m.name, m.size) for m in members)).encode()
    return hashlib.md5(data).hexdigest()


class Trial:
    """A job in a room of its own, before, under and after a fault.

    Attributes:
        job: the job.
        old: what was there before.
        new: what an undisturbed run leaves.
        n_operations: that an undisturbed run makes in the file system.
        seconds: that it takes.
        n_bytes: of the largest file.
    """

    def __init__(self, job: Job, folder: Path):
        self.job, self.folder = job, folder
        self.room, self._temporary = folder / "room", folder / "temporary"
        self.prepare()
        self.old = digest(self.room)
        started = time.monotonic()
        counter = folder / "operations"
        assert self.fork(job.run, lambda: count_operations(counter)) == 0, self.output()
        self.seconds = time.monotonic() - started
        self.new, self.n_operations = digest(self.room), counter.stat().st_size
        self.n_bytes = max(file.stat().st_size for file in self.room.rglob("*") if file.is_file())

    def prepare(self) -> None:
        """A new room, with what the job replaces."""
        for folder in (self.room, self._temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        assert self.fork(self.job.before) == 0, self.output()

    def fork(
        self,
        run: Callable[[Path], None],
        fault: Callable[[], None] = lambda: None,
        kill_after: float | None = None,
    ) -> int:
        """Run in a forked process; its exit code, negative for the signal that ended it."""
        child = os.fork()
        if child == 0:
            code = 1
            os.environ["TMPDIR"] = str(self._temporary)
            tempfile.tempdir = None
            output = os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1), os.dup2(output, 2)
            try:
                fault()
                run(self.room)
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:
                import traceback

                traceback.print_exc()
                code = 3
            finally:
                with contextlib.suppress(BaseException):
                    sys.stdout.flush(), sys.stderr.flush()
                os._exit(code)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def output(self) -> str:
        """What the last process has printed."""
        return (self.folder / "output").read_text(errors="replace")

    def fault_in_result(self) -> str | None:
        """What is half-written under its final name, if anything is."""
        now = digest(self.room)
        for name in self.job.names:
            # Between the two renames of a replacement, readers find the old directory beside it.
            found = present_directory(self.room / name).name
            part, old, new = (
                {key.removeprefix(top): v for key, v in files.items() if key.split("/")[0] == top}
                for files, top in ((now, found), (self.old, name), (self.new, name))
            )
            if part not in (old, new) or (not part and (self.room / name).is_dir()):
                return f"{name} is neither the old one nor the new one: {sorted(part)}"
        if self.job.check is not None:
            try:
                self.job.check(self.room)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
        return None

    def fault_after_repeat(self) -> str | None:
        """Repeat the job undisturbed; what is not as if there had been no fault."""
        if self.fork(self.job.repeat) != 0:
            return f"it cannot be repeated: {self.output()[-500:]}"
        now = digest(self.room)
        if now != self.new:
            different = sorted(n for n in {*now, *self.new} if now.get(n) != self.new.get(n))
            return f"after the repeat, these differ: {different}"
        if empty := [d for d in self.room.rglob("*") if d.is_dir() and not any(d.iterdir())]:
            return f"empty folders are left: {empty}"
        return None

    def parts(self) -> list[str]:
        """Files in the room that no finished job leaves."""
        return sorted({*digest(self.room)} - {*self.old, *self.new})

    def leftovers(self) -> list[str]:
        """Temporary files that the processes so far have left outside of the room.

        PyTorch has a cache of compiled kernels there, which it reuses, and Python's `tempfile`
        tries the directory with a file of its own.
        """
        files = [f for f in self._temporary.iterdir() if not f.name.startswith("torchinductor")]
        return [f.name for f in files if not (f.is_file() and f.read_bytes() in (b"", b"blat"))]


def count_operations(counter: Path) -> None:
    """Note each operation in the file system as a byte in a file."""
    descriptor = os.open(counter, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    on_operation(lambda n, event: os.write(descriptor, b"."))


def on_operation(act: Callable[[int, str], object]) -> None:
    """Call a function before each operation that changes the file system, with its number and
    kind."""
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if (is_write and arguments[0] != os.devnull) or event in OPERATIONS:
            count += 1
            act(count, event)

    sys.addaudithook(hook)


def limit_file_size(n_bytes: int, action: signal.Handlers) -> None:
    """No file grows past a size: with SIG_DFL the process dies in the middle of the write."""
    signal.signal(signal.SIGXFSZ, action)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_trials(
    description: str,
    make_jobs: Callable[[Path], dict[str, Job]],
    disturb: Callable[[Trial, random.Random], tuple[str, str, str | None]],
) -> None:
    """The command line of a benchmark: disturb each job many times; exit code 1 after a fault.

    Args:
        description: for `--help`.
        make_jobs: the jobs by name; their inputs are written into a directory.
        disturb: runs a prepared trial under a fault; what it was, how the job ended, and what is
            wrong afterwards, if anything is.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--only", nargs="+", metavar="JOB")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = make_jobs(Path(folder) / "sound")
        for name in args.only or jobs:
            trial, counts = Trial(jobs[name], Path(folder) / name), Counter[str]()
            for seed in range(args.seed, args.seed + args.times):
                trial.prepare()
                fault, end, wrong = disturb(trial, random.Random(f"{name} {seed}"))
                counts[end] += 1
                if wrong:
                    bad += 1
                    print(f"{name}, seed {seed}, {fault}: {wrong}", flush=True)
            print(f"{name}: {dict(counts)} of {args.times}", flush=True)
    print(f"{bad} faults")
    sys.exit(bool(bad))
