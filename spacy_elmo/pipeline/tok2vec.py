"""The task models of the paper: ELMo at the input of an encoder, and at its output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Maxout, Model, chain, concatenate, with_array
from thinc.types import Floats2d, Ragged

Embedding = Model[list[Doc], list[Floats2d]]


def ElmoTok2Vec(
    elmo: Embedding | None,
    embed: Embedding | None,
    encode: Model[list[Floats2d], list[Floats2d]] | None,
    output_elmo: Embedding | None,
) -> Embedding:
    """``[x_k; ELMo_k]`` into an encoder, ``[h_k; ELMo'_k]`` out of it (Peters et al. 2018, §3.3).

    The arguments are those of `spacy-elmo.Tok2Vec.v1`.

    Raises:
        ValueError: there is neither ``elmo`` nor ``embed``.
    """
    inputs: list[Any] = [] if embed is None else [as_list(embed)]
    if elmo is not None:
        inputs.append(elmo)
    if not inputs:
        raise ValueError(
            "The model spacy-elmo.Tok2Vec.v1 has neither 'elmo' nor 'embed'; give one at least."
        )
    model: Any = concatenate(*inputs) if len(inputs) > 1 else inputs[0]
    if encode is not None:
        # spaCy's encoders are as wide at their input as at their output.
        widths = [encode.get_dim(dim) for dim in ("nI", "nO") if encode.has_dim(dim)]
        if widths:  # an encoder of no layers has none
            reduce: Any = with_array(Maxout(nO=widths[0], nP=3, dropout=0.0, normalize=True))
            model = chain(model, reduce)
        model = chain(model, encode)
    if output_elmo is not None:
        model = concatenate(model, output_elmo)
    for name, part in [("elmo", elmo), ("output_elmo", output_elmo)]:
        if part is not None:
            model.set_ref(name, part)
    return model


def as_list(embed: Model[list[Doc], Any]) -> Embedding:
    """An embedding that gives an array for each Doc, also if it gave all in one, as spaCy's
    static vectors do."""
    width = embed.get_dim("nO") if embed.has_dim("nO") else None
    return Model("as-list", forward, init=init, layers=[embed], dims={"nO": width})


def init(model: Any, X: list[Doc] | None = None, Y: Any = None) -> None:
    [embed] = model.layers
    embed.initialize(X=X)
    if embed.has_dim("nO"):
        model.set_dim("nO", embed.get_dim("nO"))


def forward(
    model: Any, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    Y, backprop_embed = model.layers[0](docs, is_train)
    if not isinstance(Y, Ragged):
        return Y, backprop_embed
    if len(Y.lengths) != len(docs):  # spaCy's static vectors, where there are no words at all
        width = model.layers[0].get_dim("nO")
        return [model.ops.alloc2f(0, width) for _ in docs], lambda dY: list(docs)

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        return backprop_embed(Ragged(model.ops.flatten(dY), Y.lengths))

    return model.ops.unflatten(Y.dataXd, Y.lengths), backprop
