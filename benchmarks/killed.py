"""A training run that is killed again and again, beside one that is not: the same weights?

    python benchmarks/killed.py [--times 20]

Trains a tiny biLM in a process of its own, kills it (SIGKILL) at random moments, from the start of
the process to its last write, resumes it, and compares the weights at the end, bit for
bit. Prints how far each process had come.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from safetensors.torch import load_file

from spacy_elmo.bilm.base_weights import VOCAB
from spacy_elmo.pretraining.run.checkpoint import CHECKPOINT, read_progress

CONFIG = """
[paths]
train = "{train}"
dev = "{train}"

[model]
filters = [[1, 8], [2, 16]]
char_dim = 4
projection_dim = 16
dim = 64
n_layers = 2

[softmax]
kind = "sampled"
n_candidates = 100

[vocab]
min_count = 1

[training]
batch_words = 400
max_steps = {steps}
warmup_steps = 10
decay_steps = 50
dropout = 0.2
eval_every = 40
eval_words = 2000
log_every = 10
checkpoint_seconds = 0.05
"""


def command(folder: Path, out: str, *more: str) -> list[str]:
    program = [sys.executable, "-m", "spacy_elmo.pretraining"]
    return [*program, str(folder / "config.cfg"), str(folder / out), "--quiet", *more]


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a training run, and resume it.")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room)
        words = [f"word{i}" for i in range(500)]
        sentences = (" ".join(rng.choices(words, k=rng.randint(2, 30))) for _ in range(2000))
        (folder / "text.txt").write_text("\n".join(sentences) + "\n", encoding="utf8")
        config = CONFIG.format(train=folder / "text.txt", steps=arguments.steps)
        (folder / "config.cfg").write_text(config, encoding="utf8")
        start = time.monotonic()
        subprocess.run(command(folder, "whole"), check=True)
        seconds = time.monotonic() - start
        print(f"{arguments.steps} steps without a break: {seconds:.1f} s")
        checkpoint = folder / "killed" / CHECKPOINT
        kills = 0
        while True:
            # Before that there is nothing to resume.
            resume = ["--resume"] if (folder / "killed" / VOCAB).exists() else []
            process = subprocess.Popen(command(folder, "killed", *resume))
            with contextlib.suppress(subprocess.TimeoutExpired):
                # Somewhat less than a share of the run each, so that it takes all the kills.
                process.wait(rng.uniform(0.5, 1.5) * (2.5 + 0.6 * seconds / arguments.times))
            if kills < arguments.times and process.poll() is None:
                process.kill()
                process.wait()
                kills += 1
                # It is there whole or not at all: this would fail on half of one.
                done = read_progress(checkpoint)[0].step if checkpoint.exists() else 0
                print(f"kill {kills}: {done} steps are safe", flush=True)
                continue
            if process.wait() != 0:
                raise SystemExit("The run failed.")
            break
        names = ("model-last", "model-best")
        for name in names:
            whole, killed = (
                load_file(folder / run / name / "weights.safetensors")
                for run in ("whole", "killed")
            )
            same = whole.keys() == killed.keys() and all(
                bool((whole[key] == killed[key]).all()) for key in whole
            )
            print(f"{name} after {kills} kills: {'the same, bit for bit' if same else 'OTHER'}")
            if not same:
                raise SystemExit(1)


if __name__ == "__main__":
    main()
