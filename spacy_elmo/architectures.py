"""Every registered name, one constructor each; none of them opens a file."""

from typing import Any, Callable, Dict, List, Optional, Union

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .pipeline import listener, logger, scalar_mix, unfreezing
from .pipeline.layer import BiLMLayer, Reading
from .pipeline.mixed import mixed_layers
from .pipeline.shim import Settings
from .pipeline.tok2vec import ElmoTok2Vec

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP007, UP035, UP045


def Elmo(
    weights: Union[str, List[str]] = "en_sm",
    frozen: bool = True,
    width: Optional[int] = None,
    initial_state: str = "auto",
    segments: str = "auto",
    max_words: int = 400,
    batch_words: int = 4096,
    learn_rate_factor: float = 1.0,
    cache_mb: int = 1024,
    cache_half: bool = False,
    mix: Optional[Model[List[Floats3d], List[Floats2d]]] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """``spacy-elmo.Elmo.v1``: a biLM and a mix of its layers (Peters et al. 2018).

    Args:
        weights: an embedded or installed name; a directory of weights, our own layout or the
            published one; a zip of published ones; or two paths, of options.json and HDF5 file.
        frozen: the biLM does not learn; no graph is built, the mix still learns.
        width: size 2P of the vectors, known from the weights; if given, it is checked.
        initial_state: what each sentence starts from: ``"zero"``; ``"warm"``, a state as the
            published biLMs know it, always the same; or ``"auto"``, what the weights were trained
            for: ``"warm"`` for published ones, ``"zero"`` for ours.
        segments: ``"sents"``, the Doc's sentences; ``"doc"``, the whole Doc; ``"auto"``, its
            sentences if it has any, else cut after sentence-final punctuation.
        max_words: longest sequence read at once; longer ones in overlapping windows.
        batch_words: padded words of one forward pass, whatever the number of Docs.
        learn_rate_factor: by which the learning rate is multiplied for the biLM, if it is not
            frozen.
        cache_mb: megabytes of layers that are held while something learns from a frozen biLM, so
            that it reads each sentence of the training once; 0 for none.
        cache_half: hold them in half precision, which rounds them.
        mix: how the layers become one vector, `spacy-elmo.ScalarMix.v1`; None for its defaults.

    Returns:
        ``List[Doc]`` to one array ``(n_tokens, 2P)`` each.

    Raises:
        ValueError: a setting is out of range.
    """
    settings = Settings(
        weights, frozen, width, initial_state, learn_rate_factor, cache_mb, cache_half
    )
    bilm = BiLMLayer(settings, Reading(segments, max_words, batch_words))
    return mixed_layers(bilm, mix if mix is not None else ScalarMix())


def ScalarMix(
    initial_weights: Optional[List[float]] = None,
    gamma: float = 1.0,
    layer_norm: bool = False,
    dropout: float = 0.0,
    l2: float = 0.0,
    trainable: bool = True,
) -> Model[List[Floats3d], List[Floats2d]]:
    """``spacy-elmo.ScalarMix.v1``: see `spacy_elmo.pipeline.scalar_mix.ScalarMix`."""
    return scalar_mix.ScalarMix(initial_weights, gamma, layer_norm, dropout, l2, trainable)


def ElmoListener(
    upstream: str = "elmo",
    dropout: float = 0.5,
    layer_norm: bool = False,
    mix_l2: float = 0.001,
    initial_weights: Optional[List[float]] = None,
    gamma: float = 1.0,
    trainable: bool = True,
) -> Model[List[Doc], List[Floats2d]]:
    """``spacy-elmo.ElmoListener.v1``: a mix of its own of what an elmo component has read.

    Its width is that of the component's weights; there is nothing to be set.

    Args:
        upstream: the component's name.
        dropout, layer_norm, initial_weights, gamma, trainable: see
            `spacy_elmo.pipeline.scalar_mix.ScalarMix`.
        mix_l2: λ, its ``l2``.

    Returns:
        ``List[Doc]`` to one array ``(n_tokens, 2P)`` each.

    Raises:
        ValueError: a setting is out of range.
    """
    mix = ScalarMix(initial_weights, gamma, layer_norm, dropout, mix_l2, trainable)
    return listener.ElmoListener(upstream, mix)


def Tok2Vec(
    elmo: Optional[Model[List[Doc], List[Floats2d]]] = None,
    embed: Optional[Model[List[Doc], List[Floats2d]]] = None,
    encode: Optional[Model[List[Floats2d], List[Floats2d]]] = None,
    output_elmo: Optional[Model[List[Doc], List[Floats2d]]] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """``spacy-elmo.Tok2Vec.v1``: the task models of Peters et al. 2018, §3.3, part by part.

    Args:
        elmo: `spacy-elmo.ElmoListener.v1` (or `spacy.Tok2VecListener.v1`, `spacy-elmo.Elmo.v1`),
            concatenated with the embedding.
        embed: another embedding, such as `spacy.MultiHashEmbed.v2`, `spacy.CharacterEmbed.v2` or
            the layer `spacy.StaticVectors.v2`.
        encode: what reads both, such as `spacy.MaxoutWindowEncoder.v2` or
            `spacy.TorchBiLSTMEncoder.v1`; before it their vectors are brought to its width.
        output_elmo: a second mix, concatenated with what the encoder gives.

    Returns:
        ``List[Doc]`` to one array ``(n_tokens, width)`` each.

    Raises:
        ValueError: there is neither ``elmo`` nor ``embed``.
    """
    return ElmoTok2Vec(elmo, embed, encode, output_elmo)


def ConsoleLogger(
    progress_bar: Optional[str] = None,
    console_output: bool = True,
    output_file: Optional[str] = None,
    mixes_file: Optional[str] = None,
) -> logger.Setup:
    """``spacy-elmo.ConsoleLogger.v1``: `spacy.ConsoleLogger.v3`, and the mixes at each evaluation.

    It also drops, at the end of the training, what is held of a frozen biLM's layers.

    Args:
        progress_bar, console_output, output_file: as spaCy's.
        mixes_file: a file for the mixes and the use of the cache, a line of JSON for each
            evaluation. The mixes are those of the step, not the averages that are saved.

    Raises:
        ValueError: ``mixes_file`` exists.
    """
    return logger.console_logger(progress_bar, console_output, output_file, mixes_file)


def gradual_unfreezing(
    component: str = "elmo", every: int = 1, unit: str = "epoch", first: int = 0
) -> Callable[[Language, Dict[str, Any]], None]:
    """``spacy-elmo.gradual_unfreezing.v1``: for ``[training.before_update]``.

    The biLM's parts begin to learn one after another: the LSTM layers from the top, at last the
    token encoder. Its component's model needs ``frozen = false``.

    Args:
        component: whose biLM.
        every: epochs or steps from one part to the next.
        unit: ``"epoch"`` or ``"step"``.
        first: parts that learn from the beginning; with 0, only the tasks do.

    Raises:
        ValueError: a setting is out of range; or, in the training, there is no such component,
            or its biLM is frozen.
    """
    return unfreezing.gradual_unfreezing(component, every, unit, first)


def Shards(paths: Union[str, List[str]]) -> Any:
    """``spacy-elmo.Shards.v1``: a text for pretraining, tokenized by `elmo tokenize`.

    Args:
        paths: files of a sentence a line, its words separated by spaces; directories of them; or
            patterns such as ``corpus/*.txt.gz``. Packed ones end in .gz, .xz or .zst.
    """
    from .pretraining.data import shards  # every `spacy.blank` imports this module

    return shards.Shards(paths)


def Texts(paths: Union[str, List[str]], lang: str = "en", tokenizer: Optional[str] = None) -> Any:
    """``spacy-elmo.Texts.v1``: raw text for pretraining, tokenized as it is read.

    Args:
        paths: files of a paragraph a line (.txt), of JSON with a ``"text"`` a line (.jsonl), both
            also .gz, .xz or .zst, or of Docs (.spacy); directories of them; or patterns.
        lang: code of the language whose tokenizer is used.
        tokenizer: registered name of another tokenizer, one that needs no settings, such as
            ``"spacy.Tokenizer.v1"``.
    """
    from . import readers

    return readers.Texts(paths, lang, tokenizer)
