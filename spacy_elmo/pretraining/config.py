"""The training config: a spaCy config, whose sections check their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from confection import Config
from spacy.util import load_config, registry

from ..bilm.config import BiLMConfig
from ..util.files import naming_errors
from ..util.settings import Settings, above_zero, at_least, below_one, in_range, one_of

CONFIG = "pretrain.cfg"  # in the directory of a run
CORPORA = ("train", "dev")


@dataclass(frozen=True)
class Paths(Settings):
    """The files of a run.

    Attributes:
        train, dev: a shard, a directory of shards, a pattern, or a list of these.
        vocab: a file with one word per line, most frequent first; None to count the words in the
            training text, or to keep the head of ``weights``.
        weights: a biLM to start from, see `find_weights`; None for random initialization.
    """

    title = "Config: [paths]"
    train: str | list[str] | None = None
    dev: str | list[str] | None = None
    vocab: str | None = None
    weights: str | None = None


@dataclass(frozen=True)
class VocabSettings(Settings):
    """How a vocabulary is counted, if none is given.

    Attributes:
        max_size: its largest size.
        min_count: the lowest count of a word in it.
    """

    title = "Config: [vocab]"
    max_size: int = at_least(4, 50_000)
    min_count: int = at_least(1, 2)


@dataclass(frozen=True)
class CorpusSettings(Settings):
    """How texts are read.

    Attributes:
        max_words: longer sentences are split.
        buffer_words: the size of the shuffle buffer, through which a larger text is read.
    """

    title = "Config: [corpus]"
    max_words: int = at_least(1, 100)
    buffer_words: int = at_least(1, 4_000_000)


@dataclass(frozen=True)
class SoftmaxSettings(Settings):
    """The softmax.

    Attributes:
        kind: ``"sampled"`` or ``"full"``.
        n_candidates: the number of distinct words to draw for each step; half of the vocabulary if
            it has no more words than this.
    """

    title = "Config: [softmax]"
    kind: str = one_of("sampled", "full")
    n_candidates: int = at_least(1, 2048)


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """The optimizer, Adam; its schedule; and when to log, evaluate and save.

    Attributes:
        batch_words: the number of tokens in a batch, boundaries included.
        max_steps: the length of the run.
        max_epochs: the run ends after this many passes over the text, if that is sooner; 0 for no
            limit.
        minutes: the run ends after as many steps as take this long, if that is sooner. It times its
            first steps; evaluations take more time. 0 for no limit.
        head_first: the number of first steps that train the head alone, if it is new and the biLM
            is not; at most half of the run.
        learning_rate: the highest rate. The rate rises to it over ``warmup_steps``, stays, and
            falls to zero over the last ``decay_steps``. Both are shortened if the run is shorter; a
            run with ``minutes`` has a twentieth and a third of its steps instead.
        matmul_precision: PyTorch's name for the precision of float32 products. Evaluations have the
            highest.
        mixed_precision: compute products in bfloat16, all else and evaluations in float32.
        eval_words: the number of words that an evaluation reads; 0 for all.
        checkpoint_seconds: the longest time between checkpoints.
        teacher: a block that names a registered function (``@misc``), whose result gives another
            model's vectors of sentences, see `teacher.Teacher`. A linear map of the layers learns
            these vectors.
        teacher_weight: the weight of the distance to them, ``1 - cos`` for each word, in the loss
            that is logged.
    """

    title = "Config: [training]"
    seed: int = at_least(0, 0)
    batch_words: int = at_least(1, 2048)
    max_steps: int = at_least(1, 100_000)
    max_epochs: int = at_least(0, 0)
    minutes: float = in_range(0, 1_000_000, 0.0)
    head_first: int = at_least(0, 500)
    learning_rate: float = above_zero(0.001)
    warmup_steps: int = at_least(0, 500)
    decay_steps: int = at_least(0, 10_000)
    dropout: float = below_one(0.1)
    max_grad_norm: float = above_zero(1.0)
    matmul_precision: str = one_of("highest", "high", "medium")
    mixed_precision: bool = False
    eval_every: int = at_least(1, 1000)
    eval_words: int = at_least(0, 0)
    log_every: int = at_least(1, 50)
    checkpoint_seconds: float = at_least(0, 300.0)
    teacher: dict[str, Any] | None = None
    teacher_weight: float = above_zero(1.0)


SECTIONS: dict[str, type[Settings]] = {
    "paths": Paths, "vocab": VocabSettings, "corpus": CorpusSettings, "softmax": SoftmaxSettings,
    "training": TrainingSettings,
}  # fmt: skip
# Values in [model] with which a biLM cannot be trained, and what to do.
REFUSED = {
    "initial_state": ("warm", 'set it to "zero": it is trained on sentences that start from zeros'),
    "token_encoder": (
        "char_word_cnn", "ELMoForManyLangs cannot be pretrained; fine-tune it (frozen = false)",
    ),
    "int8": (True, "leave it out, and round the weights after training: elmo convert --int8"),
}  # fmt: skip


@dataclass(frozen=True)
class PretrainConfig:
    """The settings of a run.

    Attributes:
        model: None for the shape of the biLM in [paths] weights, or in the checkpoint.
        paths, vocab, corpus, softmax, training: the other sections.
        corpora: blocks ``train`` and ``dev`` that name registered corpus readers, instead of shards
            in [paths].

    Raises:
        ValueError: a section or setting is unknown, has the wrong type or is out of range, or two
            settings contradict each other.
    """

    model: BiLMConfig | None = None
    paths: Paths = field(default_factory=Paths)
    vocab: VocabSettings = field(default_factory=VocabSettings)
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    corpora: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.corpora:
            if name not in CORPORA:
                raise ValueError(f"Config: unknown block [corpora.{name}]; known are {CORPORA}.")
            if getattr(self.paths, name) is not None:
                raise ValueError(
                    f"Config: both [corpora.{name}] and [paths] {name} are set; remove one, or "
                    f"set --paths.{name} null."
                )
        for name, (value, advice) in REFUSED.items():
            if self.model is not None and getattr(self.model, name) == value:
                raise ValueError(f"Config: [model] {name} is {value!r}; {advice}.")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The sections in JSON types."""
        sections = {name: asdict(getattr(self, name)) for name in SECTIONS}
        model = {} if self.model is None else {"model": self.model.to_dict()}
        return {**model, **sections, "corpora": self.corpora}

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> PretrainConfig:
        """Make a config from its sections; what they omit has its default."""
        known = ["model", *SECTIONS, "corpora"]
        unknown = sorted(set(data) - set(known))
        if unknown:
            raise ValueError(f"Config: unknown sections {unknown}; known are {known}.")
        sections: dict[str, Any] = {}
        for name, kind in SECTIONS.items():
            kind.check_names(data.get(name, {}))
            sections[name] = kind(**data.get(name, {}))
        if "model" in data:
            try:
                sections["model"] = BiLMConfig.from_dict(data["model"])
            except (TypeError, ValueError) as error:
                raise ValueError(f"Config: [model] {error}") from error
        return cls(corpora=dict(data.get("corpora", {})), **sections)

    def with_model(self, started: BiLMConfig, where: str) -> PretrainConfig:
        """The config with the shape of the weights to start from.

        Args:
            started: the config of the weights.
            where: their path, for errors.

        Raises:
            ValueError: [model] is set to another shape.
        """
        shape = replace(started, initial_state="zero", int8=False)
        if self.model not in (None, shape):
            raise ValueError(
                f"Config: [model] differs from the weights '{where}' to start from. Remove the "
                f"section: the shape comes with the weights."
            )
        return replace(self, model=shape)


def read_config(path: Path, overrides: Mapping[str, Any] | None = None) -> PretrainConfig:
    """Read a config file.

    Args:
        path: the file; ``-`` for the standard input.
        overrides: settings by ``section.name``.

    Raises:
        ValueError: the file or a setting cannot be read, or a setting is unknown.
    """
    with naming_errors("the config", str(path)):  # it may be a pipe
        data = Config(PretrainConfig().to_dict()).merge(load_config(path))
        data = Config().from_str(data.to_str(), overrides=dict(overrides or {}))
    return PretrainConfig.from_dict(data)


def make_block(name: str, block: Any, kind: str) -> Any:
    """Call the registered function that a block of the config names.

    Args:
        name: the name of the block.
        block: the arguments of the function.
        kind: the key that names the function, such as ``"@readers"``.

    Raises:
        ValueError: no such function is registered, or its arguments are wrong.
    """
    if not isinstance(block, dict) or not isinstance(block.get(kind), str):
        raise ValueError(f'Config: [{name}] must be a block with {kind} = "NAME".')
    try:
        return registry.resolve({"block": block})["block"]
    except (ValueError, TypeError, ImportError) as error:
        raise ValueError(f"Config: [{name}] cannot be made. {str(error).strip()}") from error
