"""What tests of learning need."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam

from .helpers import WIDTH, make_nlp

WORDS = {"the": "D", "a": "D", "bank": "N", "river": "N", "plays": "V", "sat": "V", ".": "P"}
TEXT = "the bank sat."
LISTENER: dict[str, Any] = {
    "@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "elmo"
}  # fmt: skip
EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2", "width": 8, "attrs": ["NORM"], "rows": [50],
    "include_static_vectors": False
}  # fmt: skip
ENCODE = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 8, "depth": 1, "window_size": 1,
    "maxout_pieces": 2
}  # fmt: skip


def make_examples(nlp: Language, n: int = 8) -> list[Example]:
    rng = random.Random(0)
    examples = []
    for _ in range(n):
        words = rng.choices(list(WORDS), k=rng.randint(1, 9))
        reference = Doc(nlp.vocab, words=words, tags=[WORDS[word] for word in words])
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return examples


def tagger_config(tok2vec) -> dict:
    return {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}}


def listening(**settings: Any) -> dict[str, Any]:
    defaults = {"@architectures": "spacy-elmo.ElmoListener.v1", "dropout": 0.0, "mix_l2": 0.0}
    return {**defaults, **settings}


def two(elmo: dict[str, Any], output_elmo: dict[str, Any]) -> dict[str, Any]:
    """Listeners before an encoder and behind it."""
    return {
        "@architectures": "spacy-elmo.Tok2Vec.v1",
        "elmo": elmo,
        "embed": EMBED,
        "encode": ENCODE,
        "output_elmo": output_elmo,
    }


def make_pipeline(weights, tok2vec: dict[str, Any] = LISTENER, **settings) -> Language:
    """An elmo component with these settings of its model, and a tagger."""
    nlp = make_nlp(weights, **settings)
    nlp.add_pipe("tagger", config=tagger_config(tok2vec))
    return nlp


def make_inline(weights, **settings) -> Language:
    nlp = spacy.blank("en")
    tok2vec = {"@architectures": "spacy-elmo.Elmo.v1", "weights": str(weights), **settings}
    nlp.add_pipe("tagger", config=tagger_config(tok2vec))
    return nlp


def start(nlp: Language, learn_rate: float = 0.05) -> tuple[list[Example], Adam]:
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    for _, pipe in nlp.pipeline:
        for node in pipe.model.walk():
            if node.name == "softmax":  # zeros let no gradient through
                W = node.get_param("W")
                values = np.sin(np.arange(W.size, dtype="float32")).reshape(W.shape)
                node.set_param("W", node.ops.asarray(values))
    return examples, Adam(learn_rate)


def started(
    weights: Any, tok2vec: dict[str, Any] = LISTENER, steps: int = 0, **settings: Any
) -> tuple[Language, list[Example], Adam]:
    """A pipeline of `make_pipeline`, initialized and trained for some steps."""
    nlp = make_pipeline(weights, tok2vec, **settings)
    examples, optimizer = start(nlp)
    for _ in range(steps):
        step(nlp, examples, optimizer)
    return nlp, examples, optimizer


def step(nlp: Language, examples: list[Example], optimizer, batches: int = 1) -> dict[str, float]:
    """As `spacy train` does it: all components read the batches, then all learn."""
    losses: dict[str, float] = {}
    size = len(examples) // batches
    for i in range(batches):
        nlp.update(examples[i * size : (i + 1) * size], sgd=False, losses=losses)
    for _, pipe in nlp.pipeline:
        if pipe.is_trainable:
            pipe.finish_update(optimizer)
    return losses


def gradients_of(
    nlp: Language, examples: list[Example], batches: int = 1
) -> dict[tuple[int, str], np.ndarray]:
    """What one step would change, by the id of the layer and the parameter's name."""
    noted: dict[tuple[int, str], np.ndarray] = {}

    def note(key: tuple[int, str], value: Any, gradient: Any) -> tuple[Any, Any]:
        noted[key] = np.array(gradient, copy=True)
        return value, gradient

    step(nlp, examples, note, batches)
    return noted


def numbers(model) -> dict[str, np.ndarray]:
    return {name: p.detach().numpy().copy() for name, p in bilm_of(model).named_parameters()}


def changed(model, before: dict[str, np.ndarray]) -> set[str]:
    """Names of the biLM's parameters that have other `numbers` than before."""
    return {name for name, value in numbers(model).items() if (value != before[name]).any()}


def bilm_of(model) -> torch.nn.Module:
    return next(node for node in model.walk() if node.name == "elmo-bilm").shims[0].bilm.model


def mix_of(model):
    return next(node for node in model.walk() if node.name == "elmo-scalar-mix")
