"""Reads with AllenNLP; see `reader`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import reader
import torch
import transformers  # noqa: F401  (it asks for torchvision too, so it comes before the next lines)

# AllenNLP imports torchvision for its image models. The one on PyPI runs only with the PyTorch
# that has CUDA, and ELMo needs nothing of it.
for name in ("torchvision", "torchvision.ops", "torchvision.ops.boxes"):
    sys.modules[name] = ModuleType(name)

from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids  # noqa: E402


def load(weights: Path, batch_size: int, form: str) -> reader.Read:
    bilm = _ElmoBiLm(str(weights / "options.json"), str(weights / "model.hdf5")).eval()

    @torch.inference_mode()
    def read(batch: reader.Batch) -> list[np.ndarray]:
        bilm._elmo_lstm.reset_states()  # else it goes on where the batch before has ended
        layers = torch.stack(bilm(batch_to_ids(batch))["activations"], dim=1).numpy()
        # Row 0 is <S>, and </S> stands behind the last word.
        return [layers[i, :, 1 : len(words) + 1] for i, words in enumerate(batch)]

    return read


if __name__ == "__main__":
    reader.run("allennlp", load)
