"""Commands that write files, killed or out of space again and again: is what they leave whole?

    python benchmarks/reliability/killed.py [--fault full] [--only pretrain] [--times 50]

Before a random operation in the file system, or after a random time, the command is killed
(SIGKILL), or, with ``--fault full``, its disk is full from that operation on, which must end in one
error. Repeated, it must then give what an undisturbed one gives, bit for bit, and leave nothing
else behind. Prints each fault, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from tiny_run import elmo, write_config

OPERATIONS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
TRAINING = {
    "batch_words": 200, "max_steps": 12, "warmup_steps": 2, "decay_steps": 5, "dropout": 0.2,
    "eval_every": 5, "log_every": 3, "checkpoint_seconds": 0,
}  # fmt: skip

Run = Callable[[Path], None]  # a command that writes into a room


def make_commands(inputs: Path) -> dict[str, Run]:
    """The commands by name; what they read is written to a folder. A second run resumes or
    replaces."""
    inputs.mkdir()
    rng, (text, config) = random.Random(0), (inputs / "text.txt", inputs / "config.cfg")
    words = [f"word{i}" for i in range(200)]
    text.write_text("".join(" ".join(rng.choices(words, k=9)) + " .\n" for _ in range(200)))
    write_config(config, text, **TRAINING)

    def encode(out: Path) -> None:
        resume = ["--resume"] * any(out.parent.glob(f"{out.name}*"))
        elmo("encode", text, out, "--quiet", *resume)

    def pretrain(room: Path) -> None:
        resume = ["--resume"] * (room / "run").exists()
        elmo("pretrain", config, room / "run", "--quiet", *resume)

    def tokenize(room: Path) -> None:
        if not (room / "shards").exists():
            elmo("tokenize", text, room / "shards", "--quiet")

    return {
        "pretrain": pretrain,
        "encode to npy": lambda room: encode(room / "out.npy"),
        "encode to Parquet": lambda room: encode(room / "out.parquet"),
        "tokenize": tokenize,
        "convert": lambda room: elmo("convert", "en_sm", room / "weights", "--force"),
    }


def digest(room: Path) -> dict[str, bytes]:
    """All files, and the content of those that contain no times."""
    found = {}
    for file in filter(Path.is_file, room.rglob("*")):
        is_timed = any(part in file.name for part in ("log.jsonl", "checkpoint", ".gz"))
        found[str(file.relative_to(room))] = b"" if is_timed else file.read_bytes()
    return found


def on_operation(act: Callable[[int, str], object]) -> None:
    """Call a function before each operation that changes the file system, with its number and
    name."""
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if (is_write and arguments[0] != os.devnull) or event in OPERATIONS:
            count += 1
            act(count, event)

    sys.addaudithook(hook)


def fork(run: Run, room: Path, before: Callable[[], object], kill_after: float = 0) -> int:
    """Run in a forked process, whose output goes to a file beside the room; its exit code,
    negative for the signal that ended it."""
    child = os.fork()
    if child == 0:
        output = os.open(room.with_name("output"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1), os.dup2(output, 2)
        code = 3
        try:
            before()
            run(room)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with suppress(BaseException):
                sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
    if kill_after:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Trial:
    """A command in a room of its own.

    Attributes:
        whole: what an undisturbed run leaves.
        n_operations: that it makes in the file system.
        seconds: that it takes.
    """

    def __init__(self, run: Run, folder: Path):
        self.run, self.room = run, folder / "room"
        self.room.mkdir(parents=True)
        counter, started = folder / "operations", time.monotonic()
        descriptor = os.open(counter, os.O_WRONLY | os.O_CREAT)
        count = lambda: on_operation(lambda *_: os.write(descriptor, b"."))  # noqa: E731
        assert fork(run, self.room, count) == 0, self.output()
        self.seconds, self.n_operations = time.monotonic() - started, counter.stat().st_size
        self.whole = digest(self.room)

    def output(self) -> str:
        return self.room.with_name("output").read_text(errors="replace")

    def disturb(self, fault: str, rng: random.Random) -> tuple[int, str | None]:
        """Run with a fault, then without; how the first ended, and what is wrong."""
        shutil.rmtree(self.room)
        self.room.mkdir()
        n, seconds = rng.randint(1, self.n_operations), 0.0

        def act(i: int, event: str) -> None:
            if fault == "full" and i >= n and event in ("open", "os.mkdir"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if fault == "killed" and i == n:
                os.kill(os.getpid(), signal.SIGKILL)

        if fault == "killed" and rng.random() < 0.5:
            n, seconds = sys.maxsize, rng.uniform(0.01, self.seconds)
        code = fork(self.run, self.room, lambda: on_operation(act), seconds)
        if code > 1 or "Traceback" in self.output():
            return code, f"exit code {code}: {self.output()[-500:]}"
        if repeated := fork(self.run, self.room, lambda: None):
            return code, f"its repeat has the exit code {repeated}: {self.output()[-500:]}"
        now = digest(self.room)
        other = [name for name in {*now, *self.whole} if now.get(name) != self.whole.get(name)]
        return code, f"after the repeat, these differ: {sorted(other)}" if other else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=50, help="each command")
    parser.add_argument("--fault", choices=["killed", "full"], default="killed")
    parser.add_argument("--only", nargs="+", metavar="COMMAND")
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        commands = make_commands(Path(folder, "inputs"))
        for name in args.only or commands:
            trial, ends = Trial(commands[name], Path(folder, name)), Counter[str]()
            for seed in range(args.times):
                code, wrong = trial.disturb(args.fault, random.Random(f"{name} {seed}"))
                ends["ended before" if code == 0 else args.fault] += 1
                if wrong:
                    bad += 1
                    print(f"{name}, seed {seed}: {wrong}", flush=True)
            print(f"{name}: {dict(ends)}", flush=True)
    print(f"{bad} faults")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
