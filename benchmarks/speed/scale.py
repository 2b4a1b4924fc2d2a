"""A hundred million words through `elmo encode`: killed, resumed, and on Ray.

    python benchmarks/speed/scale.py TEXT [TEXT …] --out FOLDER [--words 100000000] [--n-process 2]
        [--kill-after 600] [--ray-words 4000000]

The means of sentences, in half precision, by `--precision auto --compiled`, as Parquet. After some
seconds all processes of the job are killed, and the command runs again with `--resume`. On Ray the
first words of the text are encoded on this machine; the cost of a billion words follows from that,
in core-hours. Words are those between spaces; spaCy makes more tokens of them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from inference import machine

from spacy_elmo.text.texts import texts_in

SETTINGS = ["--level=sentences", "--dtype=float16", "--precision=auto", "--compiled"]


def write_words(texts: list[Path], path: Path, most: int) -> int:
    """Write the first lines of some texts; the number of their words."""
    n_words = 0
    with path.open("w", encoding="utf-8") as out:
        for line in itertools.chain.from_iterable(map(texts_in, texts)):
            if n_words >= most:
                break
            n_words += len(line.split())
            out.write(line + "\n")
    return n_words


def encode(text: Path, out: Path, *options: str, kill_after: float | None = None) -> float:
    """Seconds of the command, until it ends or it and its processes are killed."""
    command = [sys.executable, "-m", "spacy", "elmo", "encode", str(text), str(out)]
    start = time.perf_counter()
    process = subprocess.Popen([*command, *SETTINGS, *options], start_new_session=True)
    with suppress(subprocess.TimeoutExpired):
        if process.wait(kill_after):
            raise SystemExit("The command has failed.")
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return time.perf_counter() - start


def figures(n_words: int, seconds: float, n_process: int) -> dict[str, float]:
    return {
        "words": n_words,
        "seconds": round(seconds, 1),
        "words/s": round(n_words / seconds),
        "core-hours for a billion words": round(1e9 / n_words * seconds * n_process / 3600, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=Path, nargs="+", metavar="TEXT")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--words", type=int, default=100_000_000)
    parser.add_argument("--n-process", type=int, default=2)
    parser.add_argument("--kill-after", type=float, default=600, help="seconds")
    parser.add_argument("--ray-words", type=int, default=4_000_000, help="0: not on Ray")
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    text, out = args.out / "text.txt", args.out / "vectors.parquet"
    n_words, processes = write_words(args.texts, text, args.words), f"--n-process={args.n_process}"
    seconds = encode(text, out, processes, kill_after=args.kill_after)
    seconds += encode(text, out, processes, "--resume")
    found = {"machine": machine(), "encode": figures(n_words, seconds, args.n_process)}
    if args.ray_words:
        part = args.out / "part.txt"
        n_part = write_words([text], part, args.ray_words)
        seconds = encode(part, args.out / "on-ray.parquet", processes, "--ray", "local")
        found["on Ray"] = figures(n_part, seconds, args.n_process)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
