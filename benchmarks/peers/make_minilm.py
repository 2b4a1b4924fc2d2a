"""Writes all-MiniLM-L6-v2 for PyTorch and for ONNX Runtime, in float32 and int8.

    python make_minilm.py OUT SENTENCES

OUT gets the files of the package, and `float32.onnx` and `int8.onnx`, both from its weights.
PyTorch and ONNX Runtime must give the words in SENTENCES (see `reader`) the same vectors.
"""

from __future__ import annotations

import json
import sys
import zipfile
from importlib.resources import files
from pathlib import Path

import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import AutoModel, AutoTokenizer

MODEL = files("all_minilm_l6_v2") / "model.zip"
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
OUTPUT = "last_hidden_state"
TOLERANCE = 1e-3


class LastLayer(torch.nn.Module):
    """Of a model of transformers, with its inputs by position."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(INPUTS, inputs, strict=True)))[OUTPUT]


@torch.inference_mode()
def main(out: Path, file: Path) -> None:
    zipfile.ZipFile(str(MODEL)).extractall(out)
    # The attention that PyTorch computes in one step has no counterpart in ONNX.
    model = LastLayer(AutoModel.from_pretrained(out, attn_implementation="eager")).eval()
    tokenizer = AutoTokenizer.from_pretrained(out)
    sentences = json.loads(file.read_text("utf-8"))[:32]
    pieces = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
    inputs = tuple(pieces[name] for name in INPUTS)
    exact, quantized = out / "float32.onnx", out / "int8.onnx"
    torch.onnx.export(
        model,
        inputs,
        str(exact),
        input_names=INPUTS,
        output_names=[OUTPUT],
        dynamic_axes={name: {0: "sentence", 1: "piece"} for name in [*INPUTS, OUTPUT]},
        opset_version=17,
        dynamo=False,
    )
    quantize_dynamic(exact, quantized, per_channel=True, weight_type=QuantType.QInt8)
    session = onnxruntime.InferenceSession(exact, providers=["CPUExecutionProvider"])
    [found] = session.run([OUTPUT], {name: pieces[name].numpy() for name in INPUTS})
    differences = (model(*inputs) - torch.from_numpy(found)).abs()
    error = differences[pieces["attention_mask"] == 1].max().item()
    if not error <= TOLERANCE:
        raise SystemExit(f"The exported model differs by {error:.1e} from PyTorch's")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
