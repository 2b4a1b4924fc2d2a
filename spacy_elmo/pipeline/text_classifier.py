"""A linear classifier of texts: their words, static vectors of these, and the mean of ELMo's."""

from collections.abc import Callable
from typing import Any, List, Optional, Tuple  # noqa: UP035

import numpy as np
from spacy.attrs import IS_SPACE, LOWER, ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.vectors import Mode
from thinc.api import Linear, Model, get_current_ops, with_cpu, zero_init
from thinc.layers.sparselinear import SparseLinear_v2
from thinc.types import Floats1d, Floats2d

from ..weights.statistics import MIN_FREQUENCY, Statistics, look_up
from .bilm_layer import BiLMShim
from .listener import LearnedFrom
from .similarity import RARITY

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP045

LENGTH = 15.0  # of each part of a text's features, for which Adam's usual rate of 0.001 is right
SUMMANDS = 2  # weights of each word, by hash, that a SparseLinear adds


def TextCatLinear(
    tok2vec: Model[List[Doc], List[Floats2d]],
    exclusive_classes: bool,
    include_static_vectors: bool = False,
    length: int = 2**14,
    nO: Optional[int] = None,
) -> Model[List[Doc], Floats2d]:
    """``spacy-elmo.TextCatLinear.v1``: for few labelled texts, one linear map of three parts.

    - the words of the text, each once, in lower case, weighted by ``-log(p(word) + 1e-5)``
    - the sum of their static vectors, of length 1 each, weighted by ``a / (a + p(word))`` (SIF,
      Arora et al. 2017)
    - the mean of the token vectors

    Each part has the same length, so a mix's γ has no effect. How frequent a word is comes from the
    statistics of the biLM: a few texts do not tell. Labels cannot be added after initialization.

    Args:
        tok2vec: `spacy-elmo.ElmoListener.v1`, or a model with one.
        exclusive_classes: one class for each text; otherwise any number.
        include_static_vectors: use those of the pipeline, which ``[initialize] vectors`` names.
        length: rows of the hashed table with the weights of words.
        nO: number of classes; found from the labels.

    Returns:
        ``List[Doc]`` to the scores ``(n_docs, nO)``.

    Raises:
        ValueError: ``length`` is less than 1; at initialization, there are no statistics of a biLM,
            or no static vectors.
    """
    if length < 1:
        raise ValueError(f"TextCatLinear's setting length must be 1 or more, found {length}.")
    words: Any = with_cpu(SparseLinear_v2(nO, length), get_current_ops())  # it knows no GPU
    vectors = Linear(nO, init_W=zero_init)
    return Model(
        "elmo-textcat-linear", forward, init=init, layers=[tok2vec, words, vectors],
        dims={"nO": nO}, refs={"tok2vec": tok2vec, "output_layer": vectors},
        attrs={
            "include_static_vectors": include_static_vectors, "multi_label": not exclusive_classes,
        },
    )  # fmt: skip


def forward(
    model: Any, docs: List[Doc], is_train: bool
) -> Tuple[Floats2d, Callable[[Floats2d], List[Doc]]]:
    tok2vec, words, vectors = model.layers
    check_vectors(vectors.get_dim("nI") - tok2vec.get_dim("nO"), docs)
    tokens, backprop_tokens = tok2vec(docs, is_train)
    X = model.ops.alloc2f(len(docs), vectors.get_dim("nI"))
    backprop_means = []
    for row, doc, each in zip(X, docs, tokens, strict=True):
        row[: each.shape[1]], backprop_mean = mean_of_length(model.ops, each)
        backprop_means.append(backprop_mean)
        if model.attrs["include_static_vectors"]:
            row[each.shape[1] :] = static_vector(model, doc)
    by_words, backprop_words = words(weighted_words(model, docs), is_train)
    by_vectors, backprop_vectors = vectors(X, is_train)
    activation = model.ops.sigmoid if model.attrs["multi_label"] else model.ops.softmax

    def backprop(dY: Floats2d) -> List[Doc]:
        # As of thinc's Softmax: what spaCy gives is the cross entropy's gradient of the logits.
        backprop_words(dY)
        d_means = backprop_vectors(dY)[:, : tok2vec.get_dim("nO")]
        backprop_tokens([back(d) for back, d in zip(backprop_means, d_means, strict=True)])
        return docs

    return activation(by_words + by_vectors), backprop


def init(model: Any, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    """Set the shapes, and take over the frequencies of words."""
    tok2vec, words, vectors = model.layers
    tok2vec.initialize(X=X)
    if Y is not None:
        model.set_dim("nO", Y.shape[1])
    for layer in (words, words.layers[0], vectors):
        layer.set_dim("nO", model.get_dim("nO"))
    words.layers[0].initialize()
    if not X:
        return
    width, setting = tok2vec.get_dim("nO"), "include_static_vectors"
    if model.attrs[setting]:
        if not X[0].vocab.vectors_length:
            raise ValueError(
                f"The model spacy-elmo.TextCatLinear.v1 has {setting} = true, but the pipeline has "
                f"no vectors. Set initialize.vectors, or {setting} = false."
            )
        width += X[0].vocab.vectors_length
    vectors.set_dim("nI", width)
    vectors.initialize()
    statistics = find_statistics(tok2vec)
    keys = np.array([get_string_id(word.lower()) for word in statistics.words], dtype=np.uint64)
    hashes, rows = np.unique(keys, return_inverse=True)
    frequencies = np.bincount(rows, statistics.frequencies, len(hashes))
    # A last one that no word has, see `look_up`.
    model.attrs["hashes"] = np.append(hashes, np.uint64(2**64 - 1))
    model.attrs["frequencies"] = np.append(frequencies, 0).astype("f")


def find_statistics(tok2vec: Model) -> Statistics:
    """The statistics of the biLM that is listened to, or is part of the model.

    Raises:
        ValueError: there is none, or its weights have no statistics.
    """
    nodes: list[Any] = list(tok2vec.walk())
    found = [shim.bilm for node in nodes for shim in node.shims if isinstance(shim, BiLMShim)]
    sources = [getattr(node, "source", None) for node in nodes]
    found += [source.bilm for source in sources if isinstance(source, LearnedFrom)]
    _ = [bilm.model for bilm in found[-1:]]  # loaded
    if not found or found[-1].statistics is None:
        raise ValueError(
            "The model spacy-elmo.TextCatLinear.v1 needs the frequencies of words, from the "
            "statistics of a biLM. Let its 'tok2vec' have a spacy-elmo.ElmoListener.v1 of weights "
            "with statistics; `python -m spacy elmo convert … --statistics` adds some."
        )
    return found[-1].statistics


def frequency(model: Any, keys: np.ndarray) -> np.ndarray:
    """``p`` of words, by the hashes of their lower case; 0 of unseen ones."""
    return look_up(model.attrs["hashes"], model.attrs["frequencies"], keys)


def weighted_words(model: Any, docs: List[Doc]) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hashes of the words of all texts, each once; their weights; their number in each text."""
    words = [np.unique(attribute(doc, LOWER)) for doc in docs]
    weights = [-np.log(frequency(model, each) + MIN_FREQUENCY) for each in words]
    weights = [LENGTH / SUMMANDS * w / np.linalg.norm(w).clip(1e-6) for w in weights]
    lengths = np.array(list(map(len, words)), dtype="int32")
    return np.concatenate(words), np.concatenate(weights).astype("f"), lengths


def static_vector(model: Any, doc: Doc) -> Floats1d:
    """The sum of the words' static vectors, of length `LENGTH`; zeros if no word has one."""
    ops, vectors = model.ops, doc.vocab.vectors
    p = ops.asarray1f(frequency(model, attribute(doc, LOWER)))
    if vectors.mode == Mode.floret:
        rows = vectors.get_batch([token.text for token in doc if not token.is_space])
    else:
        found = vectors.find(keys=attribute(doc, getattr(vectors, "attr", ORTH)))
        rows = vectors.data[found] * ops.asarray2f(found >= 0, dtype="f").reshape(-1, 1)
    rows = ops.asarray2f(rows)
    rows = rows / ops.xp.linalg.norm(rows, axis=1, keepdims=True).clip(1e-6)
    total = (rows * (RARITY / (RARITY + p))[:, None]).sum(axis=0)
    return LENGTH * total / ops.xp.linalg.norm(total).clip(1e-6)


def attribute(doc: Doc, name: int) -> np.ndarray:
    """Hashes of all tokens but whitespace."""
    values = doc.to_array([name, IS_SPACE]).reshape(len(doc), 2)
    return values[values[:, 1] == 0, 0]


def mean_of_length(ops: Any, tokens: Floats2d) -> Tuple[Any, Callable[[Floats1d], Floats2d]]:
    """The mean of the rows, of length `LENGTH`, and the callback for its gradient."""
    if not len(tokens):
        return 0.0, lambda d: ops.xp.zeros_like(tokens)
    mean = tokens.mean(axis=0)
    norm = ops.xp.linalg.norm(mean).clip(1e-6)
    unit = mean / norm

    def backprop(d: Floats1d) -> Floats2d:
        d_mean = (d - unit * (unit * d).sum()) * (LENGTH / norm / len(tokens))
        return ops.xp.broadcast_to(d_mean, tokens.shape).astype("f")

    return LENGTH * unit, backprop


def check_vectors(learned: int, docs: List[Doc]) -> None:
    """Raise a ValueError if static vectors are not as wide as those that a model learned from."""
    found = docs[0].vocab.vectors_length if docs and learned else learned
    if found != learned:
        raise ValueError(
            f"The model spacy-elmo.TextCatLinear.v1 has learned from static vectors of width "
            f"{learned}, but those of the pipeline have {found}. Set initialize.vectors to the "
            f"pipeline it was trained in, or share its vocab: spacy.blank('en', vocab=other.vocab)."
        )
