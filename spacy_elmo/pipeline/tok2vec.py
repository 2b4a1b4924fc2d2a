"""The task models of the paper: ELMo at the input of an encoder, and at its output."""

from collections.abc import Callable
from typing import Any, List, Optional, Tuple  # noqa: UP035

from spacy.tokens import Doc
from thinc.api import Maxout, Model, chain, concatenate, with_array
from thinc.types import Floats2d, Ragged

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP045


def Tok2Vec(
    elmo: Optional[Model[List[Doc], List[Floats2d]]] = None,
    embed: Optional[Model[List[Doc], List[Floats2d]]] = None,
    encode: Optional[Model[List[Floats2d], List[Floats2d]]] = None,
    output_elmo: Optional[Model[List[Doc], List[Floats2d]]] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """``spacy-elmo.Tok2Vec.v1``: ``[x_k; ELMo_k]`` into an encoder, ``[h_k; ELMo'_k]`` out of it.

    Peters et al. 2018, §3.3, part by part.

    Args:
        elmo: `spacy-elmo.ElmoListener.v1` (or `spacy.Tok2VecListener.v1`, `spacy-elmo.Elmo.v1`),
            concatenated with the embedding.
        embed: another embedding, such as `spacy.MultiHashEmbed.v2`, `spacy.CharacterEmbed.v2` or
            the layer `spacy.StaticVectors.v2`.
        encode: the encoder of both, such as `spacy.MaxoutWindowEncoder.v2` or
            `spacy.TorchBiLSTMEncoder.v1`; a Maxout layer before it reduces them to its width.
        output_elmo: a second mix, concatenated with the encoder's output.

    Returns:
        ``List[Doc]`` to one array ``(n_tokens, width)`` each.

    Raises:
        ValueError: ``elmo`` and ``embed`` are both missing.
    """
    inputs: List[Any] = [] if embed is None else [as_list(embed)]
    if elmo is not None:
        inputs.append(elmo)
    if not inputs:
        raise ValueError(
            "The model spacy-elmo.Tok2Vec.v1 has neither 'elmo' nor 'embed'; give at least one."
        )
    model: Any = concatenate(*inputs) if len(inputs) > 1 else inputs[0]
    if encode is not None:
        # spaCy's encoders are as wide at their input as at their output.
        widths = [encode.get_dim(dim) for dim in ("nI", "nO") if encode.has_dim(dim)]
        if widths:  # an encoder without layers has none
            reduce: Any = with_array(Maxout(nO=widths[0], nP=3, dropout=0.0, normalize=True))
            model = chain(model, reduce)
        model = chain(model, encode)
    if output_elmo is not None:
        model = concatenate(model, output_elmo)
    for name, part in [("elmo", elmo), ("output_elmo", output_elmo)]:
        if part is not None:
            model.set_ref(name, part)
    return model


def as_list(embed: Model[List[Doc], Any]) -> Model[List[Doc], List[Floats2d]]:
    """An embedding that returns an array for each Doc, even if it returned one Ragged, as spaCy's
    static vectors do."""
    width = embed.get_dim("nO") if embed.has_dim("nO") else None
    return Model("as-list", forward, init=init, layers=[embed], dims={"nO": width})


def forward(
    model: Any, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable[[List[Floats2d]], List[Doc]]]:
    Y, backprop_embed = model.layers[0](docs, is_train)
    if not isinstance(Y, Ragged):
        return Y, backprop_embed
    if len(Y.lengths) != len(docs):  # spaCy's static vectors, where there are no words at all
        width = model.layers[0].get_dim("nO")
        return [model.ops.alloc2f(0, width) for _ in docs], lambda dY: list(docs)

    def backprop(dY: List[Floats2d]) -> List[Doc]:
        return backprop_embed(Ragged(model.ops.flatten(dY), Y.lengths))

    return model.ops.unflatten(Y.dataXd, Y.lengths), backprop


def init(model: Any, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    [embed] = model.layers
    needs_vectors = any(node.name == "static_vectors" for node in embed.walk())
    if needs_vectors and X and X[0].vocab.vectors_length == 0:
        raise ValueError(
            "The model spacy-elmo.Tok2Vec.v1 has static vectors in its 'embed', but the pipeline "
            "has no vectors. Set initialize.vectors in the config (--paths.vectors where that is "
            "${paths.vectors}) to a directory that `spacy init vectors` has made, or to a "
            "pipeline with vectors."
        )
    embed.initialize(X=X)
    if embed.has_dim("nO"):
        model.set_dim("nO", embed.get_dim("nO"))
