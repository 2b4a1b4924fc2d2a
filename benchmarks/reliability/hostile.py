"""Damaged and hostile files and shapes, each read in a child process of limited memory and time.

    python benchmarks/reliability/hostile.py --inputs 10000
    python benchmarks/reliability/hostile.py --minutes 60     # new inputs each time
    python benchmarks/reliability/hostile.py --only weights --seed 7 --inputs 1000

Each input is one of the files that the package reads, with a seeded fault: in its bytes, or in what
its JSON or msgpack says. It must load and compute finite vectors, or end in one error of ours that
names the file (or the setting of a config), and nothing may be written elsewhere. Those of the kind
"shapes" are in shapes.py. What fails is printed with its seed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import shapes
import spacy
import srsly
import torch
from pyarrow import parquet
from spacy.tokens import DocBin
from tiny_run import elmo, write_config

import spacy_elmo
from spacy_elmo.bilm.kernel.library import open_library

MEGABYTES, SECONDS, CHUNK = 700, 20, 8  # oneDNN keeps some memory of each biLM that it computes
SOUND = -1  # the seed without damage
FINE = "loaded", "equal"
TEXT = "The bank of the river .\nA bank with money .\nNobody answered .\n" * 5
OUTSIDE = "../../outside"
VALUES: list[Any] = [
    None, True, 0, -1, 2, 2**31, 2**63 - 1, 0.5, 1e308, float("nan"), float("inf"), "", "a", "warm",
    OUTSIDE, "/proc/self/cwd/outside", "a\0b", "\ud800", "x" * 10_000, [], {}, [[]], [None],
    {"a": {"a": {}}}, [[2**40, 2**40]], [[1, 2**20]] * 50, ["F64", [0], [0, 0]],
]  # fmt: skip
FLOATS = [float("nan"), float("inf"), 3e38, -3e38]

Read = Callable[[Path], np.ndarray]  # a copy of a folder; what must be finite
Target = tuple[Path, str, Read]  # a folder, a pattern of the files that are damaged, how it is read


def damage(data: bytes, rng: random.Random) -> bytes:
    """Bytes with a flipped bit, cut, copied or overwritten somewhere, headers more often."""
    out = bytearray(data)
    at = min(rng.randrange(len(out) + 1), rng.choice((len(out), 16, 200)))
    length = rng.choice((1, 2, 8, 100, 5_000))
    fault = rng.randrange(6)
    if fault == 0 and at < len(out):
        out[at] ^= 1 << rng.randrange(8)
    elif fault == 1:
        del out[at:]
    elif fault == 2:
        del out[at : at + length]
    elif fault == 3:
        out[at:at] = out[at : at + length]
    elif fault == 4:
        out[at : at + length] = bytes([rng.choice((0, 10, 32, 255))]) * length
    else:
        out[at : at + 4] = struct.pack("<f", rng.choice(FLOATS))
    return bytes(out)


def change(value: Any, rng: random.Random) -> Any:
    """JSON-like data with one value changed, removed or added; bytes are msgpack or safetensors."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        copy = dict(value)
        key = rng.choice(sorted(copy, key=str))
        if rng.random() < 0.1:
            del copy[key]
        elif rng.random() < 0.1:
            copy[rng.choice(("unknown", OUTSIDE, ""))] = rng.choice(VALUES)
        else:
            copy[key] = change(copy[key], rng)
        return copy
    if isinstance(value, list) and value and rng.random() < 0.8:
        items = list(value)
        at = rng.randrange(len(items))
        items[at : at + rng.randrange(2)] = [change(items[at], rng)] * rng.randrange(3)
        return items
    if isinstance(value, bytes):
        for pack in (change_msgpack, change_safetensors):
            with suppress(Exception):
                return pack(value, rng)
        return damage(value, rng)
    return rng.choice(VALUES)


def change_msgpack(data: bytes, rng: random.Random) -> bytes:
    return srsly.msgpack_dumps(change(srsly.msgpack_loads(data), rng))


def change_json(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines() if data.count(b"\n{") else [data]
    at = rng.randrange(len(lines))
    text = json.dumps(change(json.loads(lines[at]), rng)) if rng.random() < 0.95 else "[" * 200_000
    lines[at] = text.encode("utf-8", "surrogatepass")
    return b"\n".join(lines) + b"\n"


def change_safetensors(data: bytes, rng: random.Random) -> bytes:
    (size,) = struct.unpack("<Q", data[:8])
    header = json.dumps(change(json.loads(data[8 : 8 + size]), rng)).encode()
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def change_config(data: bytes, rng: random.Random) -> bytes:
    """Another value of one of our settings."""
    lines = data.decode().split("\n")
    start = next((i for i, line in enumerate(lines) if line.startswith("[components.elmo")), 0)
    at = rng.choice([i for i in range(start, len(lines)) if " = " in lines[i]][:12])
    name, _, value = lines[at].partition(" = ")
    changed = json.dumps(change(json.loads(value), rng)).replace("\\ud800", "?")
    lines[at] = f"{name} = {changed}"
    return "\n".join(lines).encode()


KINDS = {
    ".json": change_json, ".jsonl": change_json, ".cfg": change_config, "model": change_msgpack,
    ".safetensors": change_safetensors,
}  # fmt: skip


def mutate(path: Path, data: bytes, rng: random.Random) -> bytes:
    kind = KINDS.get(path.suffix or path.name, damage)
    if kind is change_config or rng.random() < 0.6:
        with suppress(Exception):  # not every change can be written down
            return kind(data, rng)
    return damage(data, rng)


def make_targets(root: Path) -> dict[str, Target]:
    """Every kind of file that the package reads."""
    weights, published, texts, run = (root / n for n in ("weights", "published", "texts", "run"))
    texts.mkdir(parents=True)
    text = texts / "a.txt"
    text.write_text(TEXT)
    (texts / "b.txt.xz").write_bytes(lzma.compress(TEXT.encode()))
    lines = TEXT.splitlines()
    (texts / "c.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in lines))
    DocBin(docs=[spacy.blank("en")(t) for t in lines]).to_disk(texts / "d.spacy")
    (texts / "e.csv").write_text("id,text\n" + "".join(f'1,"{line}"\n' for line in lines))
    parquet.write_table(pyarrow.table({"text": lines}), texts / "f.parquet")
    config = root / "pretrain.cfg"
    write_config(config, text, max_steps=2, warmup_steps=0, decay_steps=0, batch_words=40)
    elmo("pretrain", config, run, "--quiet")
    shutil.copytree(run / "model-last", weights)
    elmo("convert", weights, published, "--to", "published")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": str(weights)}})
    listener = {"@architectures": "spacy-elmo.ElmoListener.v1"}
    nlp.add_pipe("tagger", config={"model": {"tok2vec": listener}}).add_label("X")
    nlp.initialize()
    nlp.to_disk(root / "pipeline")

    def read_weights(folder: Path) -> np.ndarray:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": {"weights": str(folder)}})
        return nlp("The bank é " + "x" * 60).tensor

    def read_published(folder: Path) -> np.ndarray:
        elmo("convert", folder, saved(folder), "--to", "native")
        return read_weights(saved(folder))

    def read_pipeline(folder: Path) -> np.ndarray:
        nlp = spacy.load(folder)
        nlp.to_disk(saved(folder))
        return nlp("The bank .").tensor

    def resume(folder: Path) -> np.ndarray:
        shutil.copytree(folder, saved(folder))
        elmo("pretrain", config, saved(folder), "--resume", "--training.max_steps", 4, "--quiet")
        return read_weights(saved(folder) / "model-last")

    def read_texts(folder: Path) -> np.ndarray:
        files = sorted(folder.iterdir())
        outs = [saved(folder) / f"{file.name}.npy" for file in files]
        for file, out in zip(files, outs, strict=True):
            out.parent.mkdir(exist_ok=True)
            spacy_elmo.encode(file, out, weights=str(weights), lang="en")
        return np.concatenate([np.load(out) for out in outs])

    return {
        "weights": (weights, "*", read_weights),
        "published": (published, "*", read_published),
        "pipeline": (root / "pipeline", "elmo/**/*", read_pipeline),
        "config": (root / "pipeline", "config.cfg", read_pipeline),
        "run": (run, "*", resume),
        "texts": (texts, "*", read_texts),
    }


def saved(folder: Path) -> Path:
    """Where what was read from a copy is written again."""
    return folder.with_name("saved")


def attack(target: Target, room: Path, seed: int) -> str:
    """One input; "loaded", "refused", or what went wrong."""
    folder, pattern, read = target
    rng, copy = random.Random(seed), room / "deep" / "copy"
    shutil.rmtree(room, ignore_errors=True)
    shutil.copytree(folder, copy)
    (room / "outside").write_text("Names in damaged files point here.")
    os.chdir(room)
    file = rng.choice(sorted(f for f in copy.glob(pattern) if f.is_file()))
    sound = file.read_bytes()
    if seed != SOUND:
        file.write_bytes(mutate(file, sound, rng))
    changed = {*sound.split(b"\n")} ^ {*file.read_bytes().split(b"\n")}
    settings = [line.partition(b" = ")[0].decode("utf8", "replace") for line in changed]
    names = [str(copy.parent), file.name, "Config: ", "Cannot resume", "learning_rate"]
    names += ["has learned from"]  # another biLM, in a pipeline
    names += settings if file.suffix == ".cfg" else []
    before, printed = contents(room), StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            found = read(copy)
    except (ValueError, OSError, SystemExit) as error:
        text = f"{error} {printed.getvalue()}"
        outcome = "refused" if any(name in text for name in names) else f"{error!r} {text}"
    except BaseException as error:  # of any other kind: a fault of ours
        outcome = repr(error)
    else:
        outcome = "loaded" if np.isfinite(found).all() else "values that are not finite"
    wrote = [path for path, data in contents(room).items() if before.get(path) != data]
    return outcome if not wrote and outcome in ("loaded", "refused") else (
        f"{file.name}: {outcome}, wrote {wrote}"
    )  # fmt: skip


def contents(room: Path) -> dict[str, bytes]:
    """All files of a room but those that are saved where they should be."""
    files = (p for p in room.rglob("*") if p.is_file() and room / "deep" / "saved" not in p.parents)
    return {str(path): path.read_bytes() for path in files}


def run_inputs(attack: Callable[[int], str], seeds: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The outcome of each seed, whatever happens to the children."""
    done = 0
    while done < len(seeds):
        rest = seeds[done : done + CHUNK]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 1), os.dup2(devnull, 2)
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEGABYTES * 2**20,) * 2)
            for seed in rest:
                signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of computing: others may be busy
                outcome = attack(seed).replace("\n", " ")[:500]
                os.write(writing, f"{outcome}\n".encode("utf-8", "replace"))
            os._exit(0)
        os.close(writing)
        with open(reading, encoding="utf-8") as lines:
            outcomes = [line.rstrip("\n") for line in lines]
        _, status = os.waitpid(child, 0)
        if len(outcomes) < len(rest):
            outcomes.append(f"ended with {os.waitstatus_to_exitcode(status)}")
        yield from zip(rest, outcomes, strict=False)
        done += len(outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=1000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    parser.add_argument("--only", nargs="+", metavar="KIND", help="of file, or shapes")
    parser.add_argument("--minutes", type=float, help="instead of --inputs, with seeds of the time")
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # others reserve gigabytes of addresses
    started, first, inputs, bad = time.monotonic(), args.seed, args.inputs, 0
    if args.minutes is not None:
        first, inputs = time.time_ns() // 10**9, CHUNK
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        attacks = {
            name: partial(attack, target, Path(folder, "room"))
            for name, target in make_targets(Path(folder, "sound")).items()
        }
        if open_library()[0] is not None:
            attacks["shapes"] = shapes.attack
        names = args.only or list(attacks)
        blocks = [(name, [SOUND, *range(first, first + inputs)]) for name in names]
        for name, seeds in blocks:
            for seed, outcome in run_inputs(attacks[name], seeds):
                is_fine = outcome in FINE or (seed != SOUND and outcome == "refused")
                counts[name, outcome if is_fine else "failed"] += 1
                if not is_fine:
                    bad += 1
                    print(f"{name}, seed {seed}: {outcome}", flush=True)
            if args.minutes is not None and time.monotonic() - started < 60 * args.minutes:
                blocks.append((name, [seed + CHUNK for seed in seeds if seed != SOUND]))
    for (name, outcome), n in sorted(counts.items()):
        print(f"{name}: {n:,} {outcome}")
    print(f"{bad} failed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
