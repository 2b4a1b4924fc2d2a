"""The task models of the paper: ELMo at the input of an encoder, and at its output."""

from functools import partial
from typing import Any

from spacy.tokens import Doc
from thinc.api import Maxout, Model, chain, concatenate, ragged2list, with_array
from thinc.types import Floats2d

# spaCy checks configs against these annotations, so they are plain types, not strings.


def Tok2Vec(
    elmo: Model[list[Doc], list[Floats2d]] | None = None,
    embed: Model[list[Doc], list[Floats2d]] | None = None,
    encode: Model[list[Floats2d], list[Floats2d]] | None = None,
    output_elmo: Model[list[Doc], list[Floats2d]] | None = None,
) -> Model[list[Doc], list[Floats2d]]:
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
        ``list[Doc]`` to one array ``(n_tokens, width)`` each. Its ``nO`` is set if that of the
        last part is, or of all that are concatenated last.

    Raises:
        ValueError: ``elmo`` and ``embed`` are both missing.
    """
    inputs: list[Any] = [] if embed is None else [embed]
    if embed is not None and embed.name == "static_vectors":
        inputs = [chain(*inputs, ragged2list())]  # they return one Ragged
    if elmo is not None:
        inputs.append(elmo)
    if not inputs:
        raise ValueError(
            "The model spacy-elmo.Tok2Vec.v1 has neither 'elmo' nor 'embed'; give at least one."
        )
    model: Any = join(*inputs) if len(inputs) > 1 else inputs[0]
    if encode is not None:
        # spaCy's encoders are as wide at their input as at their output.
        widths = [encode.get_dim(dim) for dim in ("nI", "nO") if encode.has_dim(dim)]
        if widths:  # an encoder without layers has none
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
    """Concatenate, and tell the width if it is known: an `entity_linker` takes it from there."""
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
    init(model, X)  # not Y, whose width spaCy's static vectors would take for theirs
