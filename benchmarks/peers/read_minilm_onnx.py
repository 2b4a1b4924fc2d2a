"""Reads with all-MiniLM-L6-v2, a small transformer, by ONNX Runtime; see `reader`.

Its weights are what `make_minilm.py` writes. It makes vectors of word pieces, of which the last
layer's are taken. Forms: float32 and int8.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import reader
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from tokenizers import Tokenizer


def load(weights: Path, batch_size: int, form: str) -> reader.Read:
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    settings = SessionOptions()
    settings.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    session = InferenceSession(find(weights, form), settings, providers=["CPUExecutionProvider"])

    def read(batch: reader.Batch) -> list[np.ndarray]:
        pieces = tokenizer.encode_batch(batch, is_pretokenized=True)
        inputs = {
            "input_ids": np.array([sentence.ids for sentence in pieces]),
            "attention_mask": np.array([sentence.attention_mask for sentence in pieces]),
            "token_type_ids": np.array([sentence.type_ids for sentence in pieces]),
        }
        return list(session.run(["last_hidden_state"], inputs)[0][:, None])

    return read


def find(weights: Path, form: str) -> Path:
    return weights / f"{form}.onnx"


if __name__ == "__main__":
    reader.run("onnxruntime", load, find)
