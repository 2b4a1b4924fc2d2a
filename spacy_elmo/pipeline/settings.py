"""The settings of a biLM in a pipeline, and those of a mix; `architectures` has the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from ..bilm.config import INITIAL_STATES
from ..text.segments import SEGMENTS
from ..util.settings import Settings, above_zero, at_least, below_one, in_range, one_of, setting
from ..weights.find import refuse_lists

MAX_GAMMA = 1e6  # of a mix; times a biLM's layers it stays finite


@dataclass(frozen=True, kw_only=True)
class BiLMSettings(Settings):
    """The arguments of `spacy-elmo.Elmo.v1`, but for its mix; not serialized, so that a config can
    change them.

    Attributes:
        weights: an embedded or downloaded name, or a directory of our format; see `find_weights`.
            In a pipeline that was loaded, the deserialized weights take precedence.
        frozen: the biLM is not trained, and no graph is built. Copies of it share its weights.
        width: dimension 2P of the vectors, known from the weights; if given, it is checked.
        initial_state: what each sentence starts from: ``"zero"``; ``"warm"``, a fixed state such as
            the published biLMs need; or ``"auto"``, what the weights were trained with: ``"warm"``
            for published ones, ``"zero"`` for ours.
        segments: ``"sents"``, the Doc's sentences; ``"doc"``, the whole Doc; ``"auto"``, its
            sentences if it has any, else split after sentence-final punctuation.
        max_words: words of the longest sequence; longer ones are read in overlapping windows.
        batch_words: words of one forward pass, sentence boundaries included, give or take half of
            them; ``nlp.pipe`` annotates up to four times as many at a time.
        learn_rate_factor: factor of the learning rate for the biLM; without effect if it is frozen.
        cache_mb: megabytes of layers to cache while something is trained on a frozen biLM, so
            that it reads each sentence of the training once; 0 for no cache.
        threads: how many threads the biLM computes on; null for OMP_NUM_THREADS or
            MKL_NUM_THREADS if one is set, else one for small products and PyTorch's number for
            large ones; ``nlp.pipe`` divides texts among threads. A worker process takes one.

    Raises:
        ValueError: a setting is out of range.
    """

    title = "The elmo model's setting"
    weights: Any = setting(kind=str)  # noqa: RUF009  # spaCy passes lists on, to an error here
    frozen: bool
    width: int | None
    initial_state: str = one_of("auto", *INITIAL_STATES)
    segments: str = one_of(*SEGMENTS)
    max_words: int = at_least(8)
    batch_words: int = at_least(1)
    learn_rate_factor: float = above_zero()
    cache_mb: int = at_least(0)
    threads: int | None = in_range(1, 1024)

    def __post_init__(self) -> None:
        refuse_lists(self.weights)
        super().__post_init__()
        if self.frozen and self.learn_rate_factor != 1.0:
            raise ValueError(
                f"{self.title} 'learn_rate_factor' is {self.learn_rate_factor}, but the biLM is "
                f"frozen: set frozen = false to train it, or leave the factor out."
            )


@dataclass(frozen=True)
class MixSettings(Settings):
    """The arguments of `ScalarMix`; not serialized with the model, so a config can change them.

    Raises:
        ValueError: a setting is out of range.
    """

    title = "The mix's setting"
    initial_weights: list[float] | None
    layer_norm: bool
    trainable: bool
    gamma: float = setting(ge=-MAX_GAMMA, le=MAX_GAMMA)
    dropout: float = below_one()
    l2: float = setting(ge=0)
    layers: int | str = setting(kind=Literal["all", "top"] | Annotated[int, Field(ge=0)])

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial_weights is not None and self.layers != "all":
            raise ValueError(
                f"{self.title} 'initial_weights' weights all layers, but 'layers' is "
                f"{self.layers!r}: leave one of them out."
            )
