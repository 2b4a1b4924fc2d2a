"""How long a training step of the LSTM layers takes: the kernel beside PyTorch's operators.

    python benchmarks/speed/pretraining.py TEXT [--words 2048] [--runs 7] [--mixed]

TEXT gives the lengths of the sentences. Each batch goes forward and backward through a layer of
`init-config --size hour` (512 cells, 128 outputs), on one thread, in turn by both; what is printed
is the median of the runs in words a second, and their ratio. --mixed: products in bfloat16.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.kernel.library import load_kernel
from spacy_elmo.bilm.kernel.training import KernelTrainingLSTM
from spacy_elmo.bilm.lstm_layer import LSTMLayer
from spacy_elmo.bilm.lstm_pytorch import OperatorLSTM
from spacy_elmo.bilm.sentence_batches import IndexedSentences, Packing
from spacy_elmo.text.files import read_lines

N_BATCHES = 6


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a training step of LSTM layers takes.")
    parser.add_argument("text", type=Path)
    parser.add_argument("--words", type=int, default=2048, help="of a batch")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--mixed", action="store_true", help="products in bfloat16")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sentences = IndexedSentences((line.split() for line in read_lines(arguments.text)), 100)
    plan = sentences.plan(arguments.words)
    batches = [sentences.lengths[batch] for batch in plan[:: max(1, len(plan) // N_BATCHES)]]
    layer, kernel = LSTMLayer(BiLMConfig(((1, 128),), 128, 512)), load_kernel()
    if kernel is None:
        parser.error("there is no kernel for this system")
    dtype = torch.bfloat16 if arguments.mixed else torch.float32
    sides = {
        "kernel": lambda: KernelTrainingLSTM(layer.weights(), kernel, dtype),
        "PyTorch's operators": lambda: OperatorLSTM(layer.weights(), dtype),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(arguments.runs + 1):
        for name, make in sides.items():
            start = time.perf_counter()
            for lengths in batches:
                n, b = int(lengths.sum()), len(lengths)
                x = torch.randn(2, n, 128, requires_grad=True)
                states = torch.zeros(2, b, 128), torch.zeros(2, b, 512)
                out = make()(x, Packing(lengths), *states)[0]
                out.backward(torch.ones_like(out))
            seconds[name].append(time.perf_counter() - start)
    n_words = int(sum(lengths.sum() for lengths in batches))
    medians = {name: statistics.median(each[1:]) for name, each in seconds.items()}
    for name, median in medians.items():
        print(f"{name}: {n_words / median:,.0f} words/s")
    first, second = medians.values()
    print(f"ratio: {second / first:.2f}")


if __name__ == "__main__":
    main()
