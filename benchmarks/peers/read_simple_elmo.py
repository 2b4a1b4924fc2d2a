"""Reads with simple_elmo (NLPL); see `reader`."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import reader
import tensorflow.compat.v1 as tf
from simple_elmo import ElmoModel, weight_layers


def load(weights: Path, batch_size: int, form: str) -> reader.Read:
    model = ElmoModel()
    logging.disable()
    model.load(str(weights), max_batch_size=batch_size)
    # Without a session of ours it would make one for each call, and load the weights anew.
    layers_of = model.sentence_embeddings_op
    model.elmo_sentence_input = weight_layers("input", layers_of, use_layers="all")
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    # The state is kept in unnamed variables and goes on from batch to batch.
    states = [v for v in tf.global_variables() if v.op.name.startswith("bilm/Variable")]
    reset = tf.variables_initializer(states)

    def read(batch: reader.Batch) -> list[np.ndarray]:
        session.run(reset)
        # A warm-up would be a first reading, whose last state the second starts from.
        layers = model.get_elmo_vectors(batch, warmup=False, layers="all", session=session)
        return [layers[i, :, : len(words)] for i, words in enumerate(batch)]

    return read


if __name__ == "__main__":
    reader.run("simple_elmo", load)
