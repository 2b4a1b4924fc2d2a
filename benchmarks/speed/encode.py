"""Words a second of `elmo encode`: two processes beside one, and beside two independent ones.

    python benchmarks/speed/encode.py TEXT [--weights NAME] [--repeat 3]

Each process computes on one thread. A job in one process is the unit. Two jobs at the same time,
each on a text of its own, show what the machine can reach with two; one job with ``--n-process 2``
on both texts should come close. All start from the same process, with the weights loaded, and are
timed in turn; the median of the ratios is printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import spacy_elmo


def timed(jobs: list[tuple[Path, int]], weights: str) -> float:
    """Seconds for jobs (a text, and its number of processes) that run at the same time."""
    context: Any = multiprocessing.get_context("fork")
    room = Path(tempfile.mkdtemp(dir=jobs[0][0].parent))
    processes = [
        context.Process(
            target=spacy_elmo.encode,
            args=(text, room / f"{index}.npy"),
            kwargs={"weights": weights, "n_process": n_process},
        )
        for index, (text, n_process) in enumerate(jobs)
    ]
    start = time.perf_counter()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit("A job failed.")
    seconds = time.perf_counter() - start
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Time elmo encode in one process and in two.")
    parser.add_argument("text", type=Path, help="UTF-8, a paragraph per line")
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    lines = arguments.text.read_text(encoding="utf-8").splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as directory:
        room = Path(directory)
        for name, part in [("a", lines[::2]), ("b", lines[1::2]), ("both", lines)]:
            (room / f"{name}.txt").write_text("".join(part), encoding="utf-8")
        first = room / "all.npy"
        n_words = spacy_elmo.encode(room / "both.txt", first, weights=arguments.weights).n_vectors
        half, other, both = (room / f"{name}.txt" for name in ("a", "b", "both"))
        ratios = []
        for _ in range(arguments.repeat):
            one = timed([(both, 1)], arguments.weights)
            apart = timed([(half, 1), (other, 1)], arguments.weights)
            two = timed([(both, 2)], arguments.weights)
            speeds = ", ".join(f"{n_words / seconds:,.0f}" for seconds in (one, apart, two))
            print(f"words/s of one process, two independent ones, --n-process 2: {speeds}")
            ratios.append((one / two, apart / two))
        faster, share = (statistics.median(values) for values in zip(*ratios, strict=True))
        print(f"--n-process 2: {faster:.2f} x one, {share:.2f} of two independent ones")


if __name__ == "__main__":
    main()
