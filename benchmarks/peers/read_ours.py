"""Reads with spacy-elmo; see `reader`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import reader
import torch

from spacy_elmo.bilm.find_weights import load_bilm
from spacy_elmo.bilm.state import zero_state


def load(weights: Path, batch_size: int) -> reader.Read:
    bilm = load_bilm(weights)
    zeros = zero_state(bilm.config, 1, torch.empty(0))

    @torch.inference_mode()
    def read(batch: reader.Batch) -> list[np.ndarray]:
        return [layers.numpy() for layers in bilm.read(batch, zeros)[0]]

    return read


if __name__ == "__main__":
    reader.run("spacy-elmo", load)
