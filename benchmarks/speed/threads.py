"""Is the number of threads chosen well, on idle processors and on busy ones?

    python benchmarks/speed/threads.py TEXT [--weights en_sm] [--words 20000] [--rounds 5]
        [--threads 1 2]

Reads TEXT (UTF-8, a paragraph a line, also .gz or .xz) text by text and by `nlp.pipe`: by default,
and with fixed numbers of threads (OMP_NUM_THREADS). Each side is a process of its own that has
loaded its pipeline; they take turns. First on the machine as it is, which should be idle; then
beside one busy process for each processor. Printed are medians in words per second, and the
default over the best fixed number, which should be 0.95 on idle processors and 0.8 on busy ones.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import spacy
from busy import busy_processes
from inference import machine, read_docs

from spacy_elmo.util.threads import VARIABLES, threads_for

DEFAULT = "default"
WAYS = ("text by text", "nlp.pipe")
WARM_UP = 1.0  # seconds


class Side:
    """A process that reads with a number of threads, or by default.

    Args:
        threads: the number, or `DEFAULT`.
        arguments: of this script.
    """

    def __init__(self, threads: str, arguments: list[str]):
        env = {name: x for name, x in os.environ.items() if name not in VARIABLES}
        if threads != DEFAULT:
            env["OMP_NUM_THREADS"] = threads
        command = [sys.executable, __file__, *arguments, "--serve"]
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def speed(self, way: str) -> float:
        """Words per second, measured now."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(way, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def serve(arguments: argparse.Namespace) -> None:
    """Answer each way of reading, a line of the input, with its words per second."""
    texts = [doc.text for doc in read_docs(arguments.text, arguments.words)]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": arguments.weights}})
    for _ in nlp.pipe(texts):  # PyTorch's start; fills the word cache
        pass
    for line in sys.stdin:
        started = time.monotonic()
        while time.monotonic() - started < WARM_UP:
            read(nlp, texts[:256], line.strip())
        started = time.monotonic()
        n_words = read(nlp, texts, line.strip())
        print(n_words / (time.monotonic() - started), flush=True)


def read(nlp: spacy.Language, texts: list[str], way: str) -> int:
    """Read texts; the number of their words."""
    return sum(len(doc) for doc in (nlp.pipe(texts) if way == "nlp.pipe" else map(nlp, texts)))


def cost_of_choosing() -> float:
    """Microseconds of processor time for one choice."""
    n, started = 20_000, time.process_time()
    for _ in range(n):
        with threads_for(0):
            pass
    return 1e6 * (time.process_time() - started) / n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", nargs="+", default=["1", "2"], help="fixed numbers")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments)
        return
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}; medians of {arguments.rounds} rounds\n")
    n_busy = len(os.sched_getaffinity(0))
    names = [DEFAULT, *arguments.threads]
    with ExitStack() as stack:
        sides = {name: Side(name, sys.argv[1:]) for name in names}
        for side in sides.values():
            stack.callback(side.end)
            side.speed(WAYS[1])  # all are ready before any is measured
        titles = " | ".join(f"{name} threads" for name in arguments.threads)
        print(f"| processors | read | default | {titles} | default / best |")
        print("|---" * (len(names) + 3) + "|")
        for n in (0, n_busy):
            with busy_processes(n):
                for way in WAYS:
                    speeds: dict[str, list[float]] = {name: [] for name in names}
                    for turn in range(arguments.rounds):
                        for name in names[turn % len(names) :] + names[: turn % len(names)]:
                            speeds[name].append(sides[name].speed(way))
                    middle = [median(speeds[name]) for name in names]
                    cells = " | ".join(f"{speed:,.0f}" for speed in middle)
                    state = f"{n} busy processes" if n else "idle"
                    ratio = middle[0] / max(middle[1:])
                    print(f"| {state} | {way} | {cells} | {ratio:.2f} |", flush=True)
    print(f"\nA choice takes {cost_of_choosing():.0f} µs.")


if __name__ == "__main__":
    main()
