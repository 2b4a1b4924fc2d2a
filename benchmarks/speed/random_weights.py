"""Writes random weights of a published size.

    python benchmarks/speed/random_weights.py OUT [--size original]

Speed and memory do not depend on their values.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.native import save_bilm

FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
SIZES = {  # cells, projection, highway layers
    "small": (1024, 128, 1),
    "medium": (2048, 256, 1),
    "original": (4096, 512, 2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="directory to write")
    parser.add_argument("--size", choices=SIZES, default="original")
    arguments = parser.parse_args()
    dim, projection, n_highway = SIZES[arguments.size]
    config = BiLMConfig(FILTERS, projection, dim, 2, n_highway=n_highway, cell_clip=3, proj_clip=3)
    torch.manual_seed(0)
    bilm = BiLM(config)
    for parameter in bilm.parameters():  # layers are about as large as those of a trained biLM
        torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    arguments.out.mkdir()
    save_bilm(bilm, arguments.out)


if __name__ == "__main__":
    main()
