"""Damaged and hostile files, each read in a child process of limited memory and time.

    python benchmarks/reliability/hostile.py --inputs 100000
    python benchmarks/reliability/hostile.py --only published zip --seed 7 --inputs 1000

Each input is one of the files that the project reads, with a seeded fault. It must load and
compute finite vectors, or end in one error of ours that names the file (or the setting of a
config). Nothing may be written but where what was loaded is saved again. What fails is printed with
its seed.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from hostile_targets import Target, make_targets
from mutations import mutate_data

MEGABYTES, SECONDS, CHUNK = 700, 20, 50
SOUND = -1  # the seed without damage


def attack(target: Target, room: Path, seed: int) -> str:
    """One input; "loaded", "refused", or what went wrong."""
    rng = random.Random(seed)
    shutil.rmtree(room, ignore_errors=True)
    folder = room / "deep" / "copy"
    shutil.copytree(target.folder, folder)
    (room / "outside").write_text("Names in damaged files point here.")
    os.chdir(room)
    files = sorted({f for each in target.damaged for f in folder.glob(each) if f.is_file()})
    file = rng.choice(files)
    sound = file.read_bytes()
    if seed != SOUND:
        file.write_bytes(mutate_data(file, sound, rng))
    names = [
        str(folder.parent), file.name, "Config: ", "Cannot resume",
        "--training.learning_rate",  # of a training that diverged
        *(changed_settings(sound, file.read_bytes()) if file.suffix == ".cfg" else []),
    ]  # fmt: skip
    before = contents(room)
    try:
        result = target.read(folder)
    except (ValueError, OSError) as error:
        if is_out_of_memory(error):
            outcome = f"more memory than {MEGABYTES} MB for {file.name}: {error}"
        elif any(name in str(error) for name in names):
            outcome = "refused"
        else:
            outcome = f"an error that does not name {file.name}: {error}"
    except BaseException as error:  # of any other kind: a fault of ours
        outcome = f"{type(error).__name__} from {file.name}: {error}"
    else:
        finite = bool(torch.isfinite(result).all())
        outcome = "loaded" if finite else f"{file.name}: values that are not finite"
    after = contents(room)
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return f"{file.name}: wrote {changed[0]}" if changed else outcome


def contents(room: Path) -> dict[str, bytes]:
    """All names in a room, and what is in the files; without what is saved where it should be."""
    paths = [
        path for path in room.rglob("*") if room / "deep" / "saved" not in (path, *path.parents)
    ]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in paths}


def changed_settings(old: bytes, new: bytes) -> set[str]:
    """The names of the settings in which two config files differ."""
    lines = {*old.split(b"\n")} ^ {*new.split(b"\n")}
    return {
        line.partition(b" = ")[0].decode("utf-8", "replace") for line in lines if b" = " in line
    }


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, is for want of memory."""
    signs = "t allocate", "to allocate", "memory allocation"  # of PyTorch and HDF5
    while error is not None:
        if isinstance(error, MemoryError) or any(sign in str(error) for sign in signs):
            return True
        error = error.__cause__ or error.__context__
    return False


def run_child(target: Target, room: Path, seeds: Sequence[int], pipe: int) -> None:
    """Some inputs in a forked process; a line for each on the pipe."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEGABYTES * 2**20,) * 2)
    torch.set_num_threads(1)
    for seed in seeds:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of computing: the machine may be busy
        signal.alarm(10 * SECONDS)
        outcome = attack(target, room, seed)
        os.write(pipe, (outcome.replace("\n", " ")[:500] + "\n").encode("utf-8", "replace"))
    os._exit(0)


def run_inputs(target: Target, room: Path, seeds: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The outcome of each seed, whatever happens to the children."""
    done = 0
    while done < len(seeds):
        rest = seeds[done : done + CHUNK]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 1), os.dup2(devnull, 2)
            run_child(target, room, rest, writing)
        os.close(writing)
        with open(reading, encoding="utf-8") as lines:
            outcomes = [line.rstrip("\n") for line in lines]
        _, status = os.waitpid(child, 0)
        if len(outcomes) < len(rest):
            signaled = os.WIFSIGNALED(status)
            kind = signal.Signals(os.WTERMSIG(status)).name if signaled else f"exit {status}"
            is_hang = kind in ("SIGALRM", "SIGPROF")
            outcomes.append("a hang" if is_hang else f"a crash: {kind}")
        yield from zip(rest, outcomes, strict=False)
        done += len(outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    parser.add_argument("--only", nargs="+", metavar="KIND", help="of file")
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    started, bad = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        targets = make_targets(root / "sound")
        chosen = args.only or list(targets)
        each = math.ceil(args.inputs / len(chosen))
        for name in chosen:
            counts: Counter[str] = Counter()
            seeds = [SOUND, *range(args.seed, args.seed + each)]
            for seed, outcome in run_inputs(targets[name], root / "room", seeds):
                if seed == SOUND and outcome == "loaded":
                    continue
                is_fine = seed != SOUND and outcome in ("loaded", "refused")
                counts[outcome if is_fine else "failed"] += 1
                if not is_fine:
                    bad += 1
                    print(f"{name}, seed {seed}: {outcome}", flush=True)
            print(f"{name}: {dict(counts)}", flush=True)
    print(f"{each * len(chosen):,} inputs in {time.monotonic() - started:.0f} s, {bad} failed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
