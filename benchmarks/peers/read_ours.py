"""Reads with spacy-elmo; see `reader`. Further option: --int8 1."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import reader
import torch

from spacy_elmo.bilm.int8 import round_gates
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import WEIGHTS


def load(weights: Path, batch_size: int) -> reader.Read:
    bilm = load_bilm(str(weights))  # a name, perhaps
    if options.int8:
        round_gates(bilm)

    @torch.inference_mode()
    def read(batch: reader.Batch) -> list[np.ndarray]:
        return [layers.numpy() for layers in bilm.read(batch, bilm.initial_state("zero"))[0]]

    return read


def find(weights: Path) -> Path:
    return Path(find_weights(str(weights)).where, WEIGHTS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--int8", type=int, default=0)
    options, sys.argv[1:] = parser.parse_known_args()
    reader.run("spacy-elmo", load, find)
