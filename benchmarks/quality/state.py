"""What the state that sentences start from is worth: zero or warm.

    python benchmarks/quality/state.py OUT --train SHARDS --dev SHARDS [--steps 6000]

Trains two small biLMs of the same shape, for the same number of steps, on the same text (shards
of `python -m spacy elmo tokenize`): one whose sentences start from zeros, as ours do, and one
that carries its state from sentence to sentence, as the published ones did. Then prints the
perplexity of the held-out sentences for each, started from zeros and from its warm state. Runs that
were stopped are resumed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.text.shards import Shards
from spacy_elmo.weights.find import load_bilm

CONFIG = """
[model]
filters = [[1, 16], [2, 32], [3, 64], [4, 128]]
n_highway = 1
projection_dim = 64
dim = 256
n_layers = 2
cell_clip = 3
proj_clip = 3

[training]
batch_words = 1700
n_streams = 64
learning_rate = 0.002
matmul_precision = "medium"
eval_words = 50000
"""


def train(out: Path, state: str, arguments: argparse.Namespace) -> Path:
    """Train one of the two, and return its directory."""
    config, run = out / "config.cfg", out / state
    out.mkdir(parents=True, exist_ok=True)
    config.write_text(CONFIG, encoding="utf-8")
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", config, run]
    command += ["--paths.train", arguments.train, "--paths.dev", arguments.dev]
    command += ["--paths.vocab", arguments.vocab] if arguments.vocab else []
    command += ["--training.state", state, "--training.max_steps", arguments.steps]
    command += ["--training.decay_steps", arguments.steps // 3]
    command += ["--training.warmup_steps", arguments.steps // 20]
    command += ["--model.initial_state", "warm" if state == "carried" else "zero"]
    subprocess.run([*map(str, command), *["--resume"] * run.exists()], check=True)
    return run / "model-last"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--vocab", help="one word a line; default: counted")
    parser.add_argument("--steps", type=int, default=6000)
    arguments = parser.parse_args()
    print("| trained | zero | warm |\n|---|---|---|")
    for state in ("carried", "zero"):
        path = train(arguments.out, state, arguments)
        model, (head, vocab) = load_bilm(path), load_head(path)
        sentences, to_ids = list(Shards(arguments.dev).sentences()), model.char_cnn.to_ids
        block, config, found = EncodedSentences(sentences, vocab, 100, to_ids), model.config, []
        for initial_state in ("zero", "warm"):
            model.config = replace(config, initial_state=initial_state)
            found.append(evaluate(model, head, block).mean)
        print(f"| {state} | {found[0]:.1f} | {found[1]:.1f} |")


if __name__ == "__main__":
    main()
