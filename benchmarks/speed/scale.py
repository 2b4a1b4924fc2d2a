"""A hundred million words through `elmo encode`: killed, resumed, and drawn over time.

    python benchmarks/speed/scale.py TEXT [TEXT …] --out FOLDER [--words 100000000] [--n-process 2]
        [--kill-after 0.4] [--ray-words 4000000]

The means of sentences, in half precision, by `--precision auto --compiled`, as one Parquet file.
When so much of the text is done, all processes of the job are killed, and the command runs again
with `--resume`. Every few seconds the finished parts are counted, and the memory of all processes:
`scale.json` in FOLDER has these samples and all figures, `scale.svg` draws them.

What limits the speed is measured apart, by processor time, on the first parts: reading lines,
tokenizing, computing, and writing (each part, and the file of all). On Ray the first words of the
text are encoded on this machine; the cost of a billion words follows from that, in core-hours.
Words are those between spaces; spaCy makes more tokens of them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
from inference import machine

import spacy_elmo
from spacy_elmo import Encoder
from spacy_elmo.encoding.job import CHUNK_TOKENS
from spacy_elmo.encoding.rows import RowFiles, make_docs
from spacy_elmo.text.texts import texts_in

SETTINGS: dict[str, Any] = {
    "level": "sentences",
    "dtype": "float16",
    "precision": "auto",
    "compiled": True,
}
COMMAND = [f"--{name}={value}" for name, value in SETTINGS.items() if value is not True]
COMMAND.append("--compiled")
EVERY = 5.0  # seconds between samples
PROFILED = 40  # parts


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


def memory(group: int) -> float:
    """Of all processes of a group, in MB: a page that some share counts once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == group:
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except OSError:  # it has ended
            continue
    return total / 1024


def watch(command: list[str], parts: Path, kill_at: float) -> Iterator[tuple[float, int, float]]:
    """Seconds, finished parts and memory while a command runs; it is killed at so many parts.

    Parts that have been joined are removed, and still count.
    """
    start, found = time.perf_counter(), 0
    process = subprocess.Popen(command, start_new_session=True)
    while process.poll() is None:
        time.sleep(EVERY)
        found = max(found, len(list(parts.glob("*.parquet"))))
        yield time.perf_counter() - start, found, memory(process.pid)
        if found >= kill_at:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return
    if process.returncode:
        raise SystemExit("The command has failed.")
    yield time.perf_counter() - start, found, 0.0


def stages(text: Path, room: Path) -> dict[str, float]:
    """Shares of the processor time of the first parts, in percent."""
    encoder = Encoder("en_sm", **SETTINGS)
    encoder.encode([0], ["It loads the weights, and compiles."])
    stages = ("reading", "tokenizing", "computing", "writing")
    clock, taken = time.process_time, dict.fromkeys(stages, 0.0)
    room.mkdir()
    chunks = RowFiles(str(text)).chunks(CHUNK_TOKENS)
    for number in range(PROFILED):
        start = clock()
        chunk = next(chunks, None)
        if chunk is None:
            break
        read = clock()
        list(make_docs(encoder.nlp, chunk.rows))
        tokenized = clock()
        rows = encoder.encode(*chunk)
        encoded = clock()
        rows.save(room / f"{number:08d}.parquet")
        taken["reading"] += read - start
        taken["tokenizing"] += tokenized - read
        # `encode` tokenizes again, with all words in the vocab now: faster than it was here.
        taken["computing"] += (encoded - tokenized) - (tokenized - read)
        taken["writing"] += clock() - encoded
    total = sum(taken.values())
    return {name: round(100 * each / total, 1) for name, each in taken.items()}


def core_hours(n_words: int, seconds: float, n_process: int) -> float:
    """For a billion words."""
    return round(1e9 / n_words * seconds * n_process / 3600, 1)


def draw(samples: list[dict[str, float]], killed: float, path: Path) -> None:
    """Millions of words and memory over minutes."""
    minutes = [sample["seconds"] / 60 for sample in samples]
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 4.5))
    above.plot(minutes, [sample["words"] / 1e6 for sample in samples], color="#1f77b4")
    above.set_ylabel("million words")
    below.plot(minutes, [sample["memory"] / 1e3 for sample in samples], color="#d62728")
    below.set(xlabel="minutes", ylabel="GB of memory", ylim=(0, None))
    for axes in (above, below):
        axes.axvline(killed / 60, color="gray", linestyle=":")
        axes.spines[["top", "right"]].set_visible(False)
    above.annotate("killed, resumed", (killed / 60, 0), xytext=(4, 4), textcoords="offset points")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=Path, nargs="+", metavar="TEXT")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--words", type=int, default=100_000_000)
    parser.add_argument("--n-process", type=int, default=2)
    parser.add_argument("--kill-after", type=float, default=0.4, help="share of the text")
    parser.add_argument("--ray-words", type=int, default=4_000_000, help="0: not on Ray")
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    text, file = args.out / "text.txt", args.out / "vectors.parquet"
    n_words = write_words(args.texts, text, args.words)
    shares = stages(text, args.out / "stages")
    rows = RowFiles(str(text))
    n_parts = sum(1 for _ in rows.chunks(CHUNK_TOKENS))
    print(f"{n_words:,} words, {n_parts:,} parts; {machine()}; {shares}", flush=True)

    elmo = [sys.executable, "-m", "spacy", "elmo", "encode", str(text), str(file), *COMMAND]
    elmo += ["--n-process", str(args.n_process)]
    samples: list[dict[str, float]] = []

    def run(command: list[str], kill_at: float) -> float:
        before = samples[-1]["seconds"] if samples else 0.0
        seconds = 0.0
        for seconds, parts, used in watch(command, Path(f"{file}.parts"), kill_at):
            if used:
                words = parts * n_words / n_parts
                samples.append({"seconds": before + seconds, "words": words, "memory": used})
        return before + seconds

    killed = run(elmo, args.kill_after * n_parts)
    finished = run([*elmo, "--resume"], float("inf"))
    description = json.loads(Path(f"{file}.json").read_text())
    computing = [sample for sample in samples if sample["words"] < n_words]
    if not computing:
        raise SystemExit("The text is too short for a sample: give more --words.")
    used = [sample["memory"] for sample in computing]
    quarter = max(1, len(used) // 4)
    found: dict[str, Any] = {
        "machine": machine(),
        "words": n_words,
        "rows": description["n_rows"],
        "sentences": description["n_vectors"],
        "processes": args.n_process,
        "seconds": round(finished),
        "words/s": round(n_words / finished),
        "seconds of joining": round(finished - computing[-1]["seconds"]),
        "memory (MB), first and last quarter": [
            round(median(used[:quarter])),
            round(median(used[-quarter:])),
        ],
        "GB of the files": round(sum(f.stat().st_size for f in file.iterdir()) / 1e9, 2),
        "share of the processor time (%)": shares,
        "core-hours for a billion words": core_hours(n_words, finished, args.n_process),
    }
    if args.ray_words:
        part = args.out / "part.txt"
        n_part = write_words([text], part, args.ray_words)
        start = time.perf_counter()
        spacy_elmo.encode(
            part, args.out / "on-ray", ray="local", n_process=args.n_process, **SETTINGS
        )
        seconds = time.perf_counter() - start
        found["on Ray"] = {
            "words": n_part,
            "seconds, with the start": round(seconds, 1),
            "words/s": round(n_part / seconds),
            "core-hours for a billion words": core_hours(n_part, seconds, args.n_process),
        }
    print(json.dumps(found, indent=1))
    (args.out / "scale.json").write_text(json.dumps(found | {"samples": samples}, indent=1) + "\n")
    draw(samples, killed, args.out / "scale.svg")
    shutil.rmtree(args.out / "stages")


if __name__ == "__main__":
    main()
