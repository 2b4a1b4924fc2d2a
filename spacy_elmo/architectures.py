"""All registered functions, except the factories. Each constructor is cheap, and opens no file."""

from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .pipeline import listener
from .pipeline.bilm_layer import bilm_layer
from .pipeline.elmo_model import elmo_model
from .pipeline.scalar_mix import ScalarMix
from .pipeline.settings import BiLMSettings
from .pipeline.text_classifier import TextCatLinear
from .pipeline.tok2vec import Tok2Vec

__all__ = [
    "Elmo", "ElmoListener", "EncodedVectors", "ScalarMix", "Shards",
    "TextCatLinear", "Texts", "Tok2Vec",
]  # fmt: skip


def Elmo(
    *,
    weights: Any = "en_sm",
    frozen: bool = True,
    width: int | None = None,
    initial_state: str = "auto",
    segments: str = "auto",
    max_words: int = 400,
    batch_words: int = 4096,
    learn_rate_factor: float = 1.0,
    cache_mb: int = 1024,
    threads: int | None = None,
    mix: Model[list[Floats3d], list[Floats2d]] | None = None,
) -> Model[list[Doc], list[Floats2d]]:
    """``spacy-elmo.Elmo.v1``: a biLM and a mix of its layers (Peters et al. 2018).

    Args:
        weights, …, threads: see `spacy_elmo.pipeline.settings.BiLMSettings`.
        mix: `spacy-elmo.ScalarMix.v1`; None for its defaults.

    Returns:
        Maps ``list[Doc]`` to arrays ``(n_tokens, 2P)``.

    Raises:
        ValueError: a setting is out of range.
    """
    settings = {name: value for name, value in locals().items() if name != "mix"}
    return elmo_model(bilm_layer(BiLMSettings(**settings)), mix or ScalarMix(), width)


def ElmoListener(
    upstream: str = "elmo",
    dropout: float = 0.0,
    layer_norm: bool = False,
    mix_l2: float = 0.001,
    initial_weights: list[float] | None = None,
    gamma: float = 1.0,
    trainable: bool = True,
    layers: int | str = "all",
) -> Model[list[Doc], list[Floats2d]]:
    """``spacy-elmo.ElmoListener.v1``: a layer in another component's model, which mixes the layers
    of an elmo component.

    Its width is that of the elmo component, and needs no setting.

    Args:
        upstream: name of the elmo component.
        dropout, layer_norm, initial_weights, gamma, trainable, layers: see
            `spacy_elmo.pipeline.scalar_mix.ScalarMix`.
        mix_l2: λ, the mix's ``l2``.

    Returns:
        Maps ``list[Doc]`` to arrays ``(n_tokens, 2P)``.

    Raises:
        ValueError: a setting is out of range.
    """
    mix = ScalarMix(initial_weights, gamma, layer_norm, dropout, mix_l2, trainable, layers)
    return listener.ElmoListener(upstream, mix)


def EncodedVectors(path: str) -> Any:
    """``spacy-elmo.EncodedVectors.v1``: a teacher for pretraining, whose vectors are in a file.

    Args:
        path: a .npy file, as `elmo encode --tokenized` writes it for the training text. Sentences
            are looked up by their words; a sentence that is not in the file teaches nothing.
    """
    from .pretraining import teacher

    return teacher.EncodedVectors(path)


def Shards(paths: str | list[str]) -> Any:
    """``spacy-elmo.Shards.v1``: a text for pretraining that `elmo tokenize` has written.

    Args:
        paths: files with one sentence per line, words separated by spaces (.txt, also .gz or .xz);
            directories of such files; or patterns such as ``corpus/*.txt.gz``.
    """
    from .text import shards  # here, because every `spacy.blank` imports this module

    return shards.Shards(paths)


def Texts(
    paths: str | list[str],
    lang: str = "en",
    tokenizer: str | None = None,
    column: str | None = None,
) -> Any:
    """``spacy-elmo.Texts.v1``: raw text for pretraining, tokenized while it is read.

    Args:
        paths: files with one paragraph per line (.txt), with a column of texts (.jsonl, .csv, .tsv
            or .parquet), or with Docs (.spacy); directories of such files; or patterns. Files of
            lines can be packed (.gz, .xz).
        lang: code of the language whose tokenizer is used.
        tokenizer: registered name of another tokenizer, one that needs no settings, such as
            ``"spacy.Tokenizer.v1"``.
        column: name of the column of texts, or key in JSONL; None for ``"text"``.
    """
    from .text import readers

    return readers.Texts(paths, lang, tokenizer, column)
