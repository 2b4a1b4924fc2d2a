"""Reads with all-MiniLM-L6-v2, a small transformer, by PyTorch; see `reader`.

Its weights are what `make_minilm.py` writes. It makes vectors of word pieces, of which the last
layer's are taken. Forms: float32, bfloat16, and int8, dynamically quantized.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import reader
import torch
from torch.ao.quantization import quantize_dynamic
from transformers import AutoModel, AutoTokenizer


def load(weights: Path, batch_size: int, form: str) -> reader.Read:
    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = AutoModel.from_pretrained(weights).eval()
    if form == "bfloat16":
        model = model.bfloat16()
    elif form == "int8":
        model = quantize_dynamic(model, {torch.nn.Linear})

    @torch.inference_mode()
    def read(batch: reader.Batch) -> list[np.ndarray]:
        pieces = tokenizer(batch, is_split_into_words=True, padding=True, return_tensors="pt")
        return list(model(**pieces).last_hidden_state[:, None].float().numpy())

    return read


if __name__ == "__main__":
    reader.run("torch", load, lambda weights, form: weights / "model.safetensors")
