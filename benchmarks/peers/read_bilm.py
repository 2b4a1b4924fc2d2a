"""Reads with bilm, the original implementation by ELMo's authors; see `reader`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import reader
import tensorflow.compat.v1 as tf

sys.modules["tensorflow"] = tf  # it was written for TensorFlow 1

from bilm import Batcher, BidirectionalLanguageModel  # noqa: E402


def load(weights: Path, batch_size: int, form: str) -> reader.Read:
    tf.disable_eager_execution()
    options, vocab = weights / "options.json", weights / "vocab.txt"
    max_characters = json.loads(options.read_text())["char_cnn"]["max_characters_per_token"]
    ids = tf.placeholder("int32", shape=(None, None, max_characters))
    bilm = BidirectionalLanguageModel(
        str(options), str(weights / "model.hdf5"), max_batch_size=batch_size
    )
    layers_of = bilm(ids)["lm_embeddings"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as words:
        if not vocab.exists():  # it only speeds up frequent words, but there must be one
            words.write("<S>\n</S>\n<UNK>\n")
            words.flush()
            vocab = Path(words.name)
        batcher = Batcher(str(vocab), max_characters)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    # The state is kept in unnamed variables and goes on from batch to batch.
    states = [v for v in tf.global_variables() if v.op.name.startswith("bilm/Variable")]
    reset = tf.variables_initializer(states)

    def read(batch: reader.Batch) -> list[np.ndarray]:
        session.run(reset)
        layers = session.run(layers_of, {ids: batcher.batch_sentences(batch)})
        return [layers[i, :, : len(words)] for i, words in enumerate(batch)]

    return read


if __name__ == "__main__":
    reader.run("bilm", load)
