"""Layers of sentences by ELMoForManyLangs itself, each sentence from a reset state.

python read_elmoformanylangs.py MODEL SENTENCES.json OUT.npz
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from elmoformanylangs import Embedder

model, sentences, out = sys.argv[1:]
embedder = Embedder(model)
layers = {}
for i, words in enumerate(json.loads(Path(sentences).read_text("utf-8"))):
    embedder.model.encoder.reset_states()
    [layers[f"s{i}"]] = embedder.sents2elmo([words], output_layer=-2)
np.savez_compressed(out, **layers)
