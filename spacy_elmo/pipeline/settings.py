"""The settings of a biLM in a pipeline, and of a mix; `architectures` has the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from ..bilm.config import INITIAL_STATES
from ..text.segments import SEGMENTS
from ..util.settings import Settings, above_zero, at_least, below_one, in_range, one_of, option
from ..weights.find import refuse_lists

MAX_GAMMA = 1e6  # with a larger γ, mixed layers might not be finite


@dataclass(frozen=True, kw_only=True)
class BiLMSettings(Settings):
    """The arguments of `spacy-elmo.Elmo.v1` except its mix. They are not serialized with the model,
    so a config can change them.

    Attributes:
        weights: a name, or a directory of our format; see `find_weights`. A saved pipeline brings
            its own weights, which take precedence.
        frozen: do not train the biLM. Copies of the pipeline share its weights in memory.
        width: the dimension 2P that the vectors must have; None for any.
        initial_state: the state from which each sentence starts: ``"zero"``; ``"warm"``, a fixed
            state that the published biLMs need; or ``"auto"``, the one with which the weights were
            trained: ``"warm"`` for published ones, ``"zero"`` for ours.
        segments: what the biLM reads at once: ``"sents"``, the Doc's sentences; ``"doc"``, the
            whole Doc; or ``"auto"``, the Doc's sentences if it has any, else the text between
            sentence-final punctuation marks.
        max_words: the largest number of words to read at once. Longer segments are read in
            overlapping windows.
        batch_words: words in one forward pass, sentence boundaries included, give or take half of
            them; ``nlp.pipe`` annotates up to four times as many at a time.
        learn_rate_factor: factor for the learning rate of a biLM that is not frozen.
        cache_mb: megabytes of memory for the layers that a frozen biLM computes in a training, so
            that it reads each sentence once; 0 for no cache.
        threads: how many threads the biLM computes on; None for OMP_NUM_THREADS or
            MKL_NUM_THREADS if one is set, else PyTorch's number, but at most 8, and at most one
            for each processor. ``nlp.pipe`` divides texts among threads. A worker process uses
            one.

    Raises:
        ValueError: a setting is out of range.
    """

    title = "The elmo model's setting"
    weights: Any = option(kind=str)  # noqa: RUF009  # spaCy passes lists on, to an error here
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
    """The arguments of `ScalarMix`. They are not serialized with the model, so a config can change
    them.

    Raises:
        ValueError: a setting is out of range.
    """

    title = "The mix's setting"
    initial_weights: list[float] | None
    layer_norm: bool
    trainable: bool
    gamma: float = option(ge=-MAX_GAMMA, le=MAX_GAMMA)
    dropout: float = below_one()
    l2: float = option(ge=0)
    layers: int | str = option(kind=Literal["all", "top"] | Annotated[int, Field(ge=0)])

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial_weights is not None and self.layers != "all":
            raise ValueError(
                f"{self.title} 'initial_weights' weights all layers, but 'layers' is "
                f"{self.layers!r}: leave one of them out."
            )
