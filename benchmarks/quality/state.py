"""What the state that sentences start from is worth: zero, warm, carried.

    python benchmarks/quality/state.py OUT --train SHARDS... --dev SHARDS... [--steps 6000]

Trains two small biLMs of the same shape, for the same number of steps, on the same text (shards
of `python -m spacy elmo tokenize`): one whose sentences start from zeros, as ours do, and one
that carries its state from sentence to sentence, as the published ones did. Then prints the
perplexity of the held-out sentences for each, started from zeros, from its warm state, and from
the state of the sentence before. Runs that were stopped are resumed.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.warm_state import compute_warm_state
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.forward import hidden_states, losses
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.stream_state import StreamState
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.text.shards import Shards
from spacy_elmo.weights.find import load_bilm

N_STREAMS = 64
SETTINGS: dict[str, dict[str, Any]] = {
    "model": {
        "filters": [[1, 16], [2, 32], [3, 64], [4, 128]],
        "n_highway": 1,
        "projection_dim": 64,
        "dim": 256,
        "n_layers": 2,
        "cell_clip": 3,
        "proj_clip": 3,
    },
    "softmax": {"kind": "sampled", "n_candidates": 2048},
    "training": {
        "batch_words": 1700,  # about what the streams give
        "n_streams": N_STREAMS,
        "learning_rate": 0.002,
        "warmup_steps": 300,
        "matmul_precision": "medium",
        "eval_every": 1000,
        "eval_words": 50_000,
        "log_every": 100,
    },
}


def train(out: Path, arguments: argparse.Namespace, state: str) -> Path:
    """Train one of the two, and return its directory."""
    settings = json.loads(json.dumps(SETTINGS))
    settings["paths"] = {"train": arguments.train, "dev": arguments.dev, "vocab": arguments.vocab}
    settings["training"] |= {"state": state, "max_steps": arguments.steps}
    settings["training"]["decay_steps"] = arguments.steps // 3
    settings["model"]["initial_state"] = "warm" if state == "carried" else "zero"
    pretrain(PretrainConfig.from_dict(settings), out, resume=True)
    return out / "model-last"


def measure(path: Path, dev: list[str]) -> dict[str, float]:
    """Mean perplexities of a model by the state that sentences start from."""
    model = load_bilm(path)
    config = model.config
    head, vocab = load_head(path)
    sentences = list(Shards(dev).sentences())
    block = EncodedSentences(sentences, vocab, max_words=100, to_ids=model.token_encoder.to_ids)
    states = {
        "zero": model.zero_state(),
        "warm, training text": model.warm_state() if config.initial_state == "warm" else None,
        "warm, the package's passage": compute_warm_state(model),
    }
    model.config = replace(config, initial_state="warm")
    found = {}
    for name, state in states.items():
        if state is not None:
            model.set_warm_state(state)
            found[name] = evaluate(model, head, block).mean
    return found | {"carried": carried(model, head, block)}


@torch.no_grad()
def carried(model: BiLM, head: SoftmaxHead, block: EncodedSentences) -> float:
    """Mean perplexity where each sentence starts from what the one before it ended in."""
    streams, total, n = StreamState(model.config, N_STREAMS), 0.0, 0
    for sentences in block.streams(N_STREAMS, np.random.default_rng(0)):
        batch = block.batch(sentences)
        read = hidden_states(model, batch, streams.first(len(batch.lengths)))
        streams.update(read.state)
        total += sum(float(nats.sum()) for nats in losses(head, read)) / 2
        n += batch.n_predicted
    return math.exp(total / n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", nargs="+", required=True)
    parser.add_argument("--dev", nargs="+", required=True)
    parser.add_argument("--vocab", help="one word a line; default: counted")
    parser.add_argument("--steps", type=int, default=6000)
    arguments = parser.parse_args()
    trained = {
        state: train(arguments.out / state, arguments, state) for state in ("zero", "carried")
    }
    print("| trained | started from | perplexity |")
    print("|---|---|---|")
    for state, path in trained.items():
        for name, perplexity in measure(path, arguments.dev).items():
            print(f"| {state} | {name} | {perplexity:.1f} |")


if __name__ == "__main__":
    main()
