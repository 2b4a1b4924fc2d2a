"""The time of the LSTM layers beside that of their matrix products alone.

    python benchmarks/speed/products.py TEXT [--weights en_sm] [--sentences 64] [--threads 1]
        [--train] [--precision bfloat16] [--compiled] [--runs 9]

The first sentences of TEXT (a paragraph a line) are one batch. Its LSTM part is `BiLM.forward`,
which gets the words' vectors; with --train it is followed by the backward pass. The products are
those that each step needs, at their shapes and of both directions at once, those that wait for no
step as one for all steps; they take float32 operands, with --precision bfloat16 such ones (in
training through ``torch.set_float32_matmul_precision("medium")``). Both, and one large product, are
timed in turn; printed are medians: milliseconds and GFLOP/s of the useful operations alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median

import spacy
import torch
from inference import machine

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import IndexedSentences, Packing
from spacy_elmo.text.shards import read_lines
from spacy_elmo.text.split_text import split_text
from spacy_elmo.weights.find import load_bilm

Shape = tuple[int, int, int]  # (m, k, n) of a product (m, k) · (k, n)
LARGE = 2048


def shapes(config: BiLMConfig, lengths: list[int], train: bool) -> list[Shape]:
    """The products of one LSTM layer.

    Args:
        config: of the biLM.
        lengths: tokens of each sentence.
        train: with those of the backward pass.
    """
    P, D, N = config.projection_dim, config.dim, sum(lengths)
    steps = Packing(lengths).batch_sizes
    found = [(N, P, 4 * D)]  # from the inputs
    found += [(size, P, 4 * D) for size in steps]  # from the state
    if config.projects_cells:
        found += [(size, D, P) for size in steps]
    if train:
        found += [(size, 4 * D, P) for size in steps]  # by the state
        found += [(N, 4 * D, P), (4 * D, N, P), (4 * D, N, P)]  # by inputs and both weights
        if config.projects_cells:
            found += [(size, P, D) for size in steps] + [(P, N, D)]
    return found


def make_products(found: list[Shape], n_layers: int, dtype: torch.dtype) -> Callable[[], object]:
    """Computes them all; the steps of a layer have their weights in common."""
    most: dict[tuple[int, int], int] = {}
    for m, k, n in found:
        most[k, n] = max(m, most.get((k, n), 0))
    operands = {
        (k, n): (
            torch.rand(2, m, k).to(dtype),
            torch.rand(2, n, k).to(dtype).transpose(1, 2),  # as weights are stored
            torch.empty(2, m, n, dtype=dtype),
        )
        for (k, n), m in most.items()
    }

    def compute() -> None:
        for _ in range(n_layers):
            for m, k, n in found:
                a, b, out = operands[k, n]
                torch.bmm(a[:, :m], b, out=out[:, :m])

    return compute


def make_lstm(
    bilm: BiLM, words: IndexedSentences, lengths: list[int], train: bool
) -> Callable[[], object]:
    """Runs the LSTM layers, backward too in training."""
    types = torch.randn(len(words.types), bilm.config.projection_dim).requires_grad_(train)
    tokens, state = torch.from_numpy(words.tokens.astype("int64")), bilm.zero_state()
    bilm.train(train)

    def run() -> None:
        with torch.set_grad_enabled(train):
            layers = bilm(types, tokens, lengths, state)[0]
        if train:
            layers[-1].backward(torch.ones_like(layers[-1]))

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--train", action="store_true", help="with the backward pass")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    is_half, train = arguments.precision == "bfloat16", arguments.train
    if is_half and train:
        torch.set_float32_matmul_precision("medium")

    sentences = split_text(spacy.blank("en"), read_lines(arguments.text))
    words = IndexedSentences(islice(sentences, arguments.sentences))
    lengths = words.lengths.tolist()
    bilm = load_bilm(arguments.weights).requires_grad_(train)
    bilm.set_precision(arguments.precision, arguments.compiled)
    found, n_layers = shapes(bilm.config, lengths, train), bilm.config.n_layers
    dtype = torch.bfloat16 if is_half else torch.float32
    large = torch.rand(LARGE, LARGE).to(dtype)
    operations = 4 * n_layers * sum(m * k * n for m, k, n in found)  # of both directions
    sides = {
        "the LSTM layers": (make_lstm(bilm, words, lengths, train), operations),
        "their products alone": (make_products(found, n_layers, dtype), operations),
        "one large product": (lambda: torch.mm(large, large), 2 * LARGE**3),
    }
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for run in range(arguments.runs + 1):  # the first does what is done only once
        for name, (compute, _) in sides.items():
            start = clock()
            compute()
            if run:
                seconds[name].append(clock() - start)
    settings = f"{arguments.precision}{', compiled' * arguments.compiled}{', training' * train}"
    print(f"{len(lengths)} sentences, {sum(lengths):,} tokens; {arguments.weights}, {settings}")
    print(f"{machine()}; medians of {arguments.runs} runs\n")
    for name, (_, n) in sides.items():
        taken = median(seconds[name])
        print(f"{name}: {1e3 * taken:.1f} ms, {n / taken / 1e9:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
