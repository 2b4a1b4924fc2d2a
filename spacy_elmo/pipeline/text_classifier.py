"""``spacy-elmo.TextCatLinear.v1``: a linear text classifier of words and ELMo's mean vector."""

from collections.abc import Callable
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import Linear, Model, chain, get_current_ops, zero_init
from thinc.layers import list2ragged, reduce_mean, with_cpu
from thinc.layers.sparselinear import SparseLinear_v2
from thinc.types import Floats2d

from ..weights.statistics import MIN_FREQUENCY
from .source_stamp import SourceStamp

LENGTH = 15.0  # norm of both parts of the features; with it Adam's usual rate, 0.001, is right
SUMMANDS = 2  # a SparseLinear adds this many hashed weights for each word


def TextCatLinear(
    tok2vec: Model[list[Doc], list[Floats2d]],
    exclusive_classes: bool,
    length: int = 2**14,
    nO: int | None = None,
) -> Model[list[Doc], Floats2d]:
    """``spacy-elmo.TextCatLinear.v1``: a linear classifier for few labelled texts, which reads

    - the distinct words of the text, in lower case, weighted by ``-log(p(word) + 1e-5)``
    - the mean of the token vectors

    Both parts have the same norm, so the γ of a mix has no effect. ``p(word)`` is from the
    statistics of the biLM. Labels cannot be added after initialization.

    Args:
        tok2vec: `spacy-elmo.ElmoListener.v1`, or a model with one, for example beside static
            vectors.
        exclusive_classes: each text has one class; otherwise any number.
        length: rows of the hashed table with the weights of words.
        nO: number of classes; inferred from the labels.

    Returns:
        ``list[Doc]`` to the scores ``(n_docs, nO)``.

    Raises:
        ValueError: ``length`` is below 1; or, at initialization, there are no statistics of a biLM.
    """
    if length < 1:
        raise ValueError(
            f"The text classifier's setting 'length' is {length}; it must be at least 1."
        )
    words: Any = with_cpu(SparseLinear_v2(nO, length), get_current_ops())  # it needs a CPU
    linear = Linear(nO, init_W=zero_init)
    mean: Any = (list2ragged(), reduce_mean(), Model("to-length", to_length_forward), linear)
    means: Any = chain(tok2vec, *mean)
    return Model(
        "elmo-textcat-linear", forward, init=init, layers=[means, words], dims={"nO": nO},
        refs={"tok2vec": tok2vec, "output_layer": linear},
        attrs={"multi_label": not exclusive_classes},
    )  # fmt: skip


def forward(
    model: Any, docs: list[Doc], is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], list[Doc]]]:
    means, words = model.layers
    by_mean, backprop_mean = means(docs, is_train)
    by_words, backprop_words = words(weighted_words(model, docs), is_train)
    activation = model.ops.sigmoid if model.attrs["multi_label"] else model.ops.softmax

    def backprop(dY: Floats2d) -> list[Doc]:
        # dY is the gradient of the logits, as spaCy computes it for thinc's Softmax too.
        backprop_words(dY)
        backprop_mean(dY)
        return docs

    return activation(by_mean + by_words), backprop


def to_length_forward(
    model: Model, X: Any, is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    """Scale rows to the norm `LENGTH`; zeros stay zeros."""
    norms = model.ops.xp.linalg.norm(X, axis=1, keepdims=True).clip(1e-6)
    unit = X / norms

    def backprop(dY: Any) -> Floats2d:
        return (dY - unit * (unit * dY).sum(axis=1, keepdims=True)) * (LENGTH / norms)

    return LENGTH * unit, backprop


def init(model: Any, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Set the shapes, and copy the frequencies of words from the biLM."""
    means, words = model.layers
    if Y is not None:
        model.set_dim("nO", Y.shape[1])
    for layer in (words, words.layers[0], model.get_ref("output_layer")):
        layer.set_dim("nO", model.get_dim("nO"))
    words.layers[0].initialize()
    means.initialize(X=X)
    sources = (getattr(node, "source", None) for node in means.walk())
    bilms = [source.bilm for source in sources if isinstance(source, SourceStamp)]
    if X and (bilms or "frequencies" not in model.attrs):
        model.attrs["frequencies"] = word_frequencies(bilms)


def word_frequencies(bilms: list[Any]) -> dict[str, float]:
    """The frequencies of words in lower case.

    Args:
        bilms: the biLMs that are listened to; the last one's statistics count.

    Raises:
        ValueError: there is no biLM, or its weights have no statistics.
    """
    if not bilms or bilms[-1].statistics is None:
        raise ValueError(
            "The model spacy-elmo.TextCatLinear.v1 needs the frequencies of words, from the "
            "statistics of a biLM. Let its 'tok2vec' have a spacy-elmo.ElmoListener.v1 of weights "
            "with statistics; `python -m spacy elmo convert … --statistics` adds some."
        )
    frequencies: dict[str, float] = {}
    for word, frequency in bilms[-1].statistics.frequencies.items():
        frequencies[word.lower()] = frequencies.get(word.lower(), 0.0) + frequency
    return frequencies


def weighted_words(model: Any, docs: list[Doc]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The hashes and weights of the distinct words of each text, and how many each text has."""
    known, words, weights = model.attrs["frequencies"], [], []
    for doc in docs:
        texts = {token.lower: token.lower_ for token in doc if not token.is_space}
        w = -np.log([known.get(text, 0.0) + MIN_FREQUENCY for text in texts.values()])
        weights.append(LENGTH / SUMMANDS * w / np.linalg.norm(w).clip(1e-6))
        words.append(np.array([*texts], dtype="uint64"))
    lengths = np.array(list(map(len, words)), dtype="int32")
    return np.concatenate(words), np.concatenate(weights).astype("f"), lengths
