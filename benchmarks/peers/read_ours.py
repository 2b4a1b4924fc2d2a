"""Reads with spacy-elmo; see `reader`. Forms: that of the weights, as float32, and int8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import reader
import torch

from spacy_elmo.bilm.int8 import round_gates
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import WEIGHTS


def load(weights: Path, batch_size: int, form: str) -> reader.Read:
    bilm = load_bilm(str(weights))  # a name, perhaps
    if form == "int8":
        round_gates(bilm)

    @torch.inference_mode()
    def read(batch: reader.Batch) -> list[np.ndarray]:
        return [layers.numpy() for layers in bilm.read(batch, bilm.initial_state("zero"))[0]]

    return read


def find(weights: Path, form: str) -> Path:
    return Path(find_weights(str(weights)).where, WEIGHTS)


if __name__ == "__main__":
    reader.run("spacy-elmo", load, find)
