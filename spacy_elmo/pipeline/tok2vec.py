"""``spacy-elmo.Tok2Vec.v1``: ELMo at the input of a task's encoder, and at its output."""

from functools import partial
from typing import Any

from spacy.tokens import Doc
from thinc.api import Maxout, Model, chain, concatenate, ragged2list, with_array
from thinc.types import Floats2d

# spaCy validates configs by these annotations, which must be types, not strings.


def Tok2Vec(
    elmo: Model[list[Doc], list[Floats2d]] | None = None,
    embed: Model[list[Doc], list[Floats2d]] | None = None,
    encode: Model[list[Floats2d], list[Floats2d]] | None = None,
    output_elmo: Model[list[Doc], list[Floats2d]] | None = None,
) -> Model[list[Doc], list[Floats2d]]:
    """``spacy-elmo.Tok2Vec.v1``: ``[x_k; ELMo_k]`` into an encoder, ``[h_k; ELMo'_k]`` out of it.

    See Peters et al. 2018, §3.3.

    Args:
        elmo: `spacy-elmo.ElmoListener.v1` (or `spacy.Tok2VecListener.v1`, `spacy-elmo.Elmo.v1`),
            concatenated with the embedding.
        embed: another embedding, such as `spacy.MultiHashEmbed.v2`, `spacy.CharacterEmbed.v2` or
            the layer `spacy.StaticVectors.v2`.
        encode: an encoder, such as `spacy.MaxoutWindowEncoder.v2` or
            `spacy.TorchBiLSTMEncoder.v1`. A Maxout layer reduces its input to its width.
        output_elmo: a second mix, concatenated with the encoder's output.

    Returns:
        Maps ``list[Doc]`` to arrays ``(n_tokens, width)``. Its ``nO`` is set if the width is known.

    Raises:
        ValueError: ``elmo`` and ``embed`` are both missing.
    """
    inputs: list[Any] = [] if embed is None else [embed]
    if embed is not None and embed.name == "static_vectors":
        inputs = [chain(*inputs, ragged2list())]  # spaCy's static vectors return one Ragged
    if elmo is not None:
        inputs.append(elmo)
    if not inputs:
        raise ValueError(
            "The model spacy-elmo.Tok2Vec.v1 has neither 'elmo' nor 'embed'; give at least one."
        )
    model: Any = join(*inputs) if len(inputs) > 1 else inputs[0]
    if encode is not None:
        # The input and the output of spaCy's encoders have the same width.
        widths = [encode.get_dim(dim) for dim in ("nI", "nO") if encode.has_dim(dim)]
        if widths:  # an encoder without layers has no width
            reduce: Any = with_array(Maxout(nO=widths[0], nP=3, dropout=0.0, normalize=True))
            model = chain(model, reduce)
        model = chain(model, encode)
    if output_elmo is not None:
        model = join(model, output_elmo)
    for name, part in [("elmo", elmo), ("output_elmo", output_elmo)]:
        if part is not None:
            model.set_ref(name, part)
    if any(node.name == "static_vectors" for node in model.walk()):
        model.init = partial(init_with_vectors, model.init)
    return model


def join(*parts: Model[list[Doc], list[Floats2d]]) -> Model[list[Doc], list[Floats2d]]:
    """Concatenate, and set the width if it is known: an `entity_linker` needs it."""
    model: Any = concatenate(*parts)
    widths = [part.maybe_get_dim("nO") for part in parts]
    if None not in widths:
        model.set_dim("nO", sum(filter(None, widths)))
    return model


def init_with_vectors(init: Any, model: Any, X: list[Doc] | None = None, Y: Any = None) -> None:
    if X and X[0].vocab.vectors_length == 0:
        raise ValueError(
            "The model spacy-elmo.Tok2Vec.v1 has static vectors in its 'embed', but the pipeline "
            "has no vectors. Set initialize.vectors in the config (--paths.vectors where that is "
            "${paths.vectors}) to a directory that `spacy init vectors` has made, or to a "
            "pipeline with vectors."
        )
    init(model, X)  # without Y, whose width spaCy's static vectors would take for their own
