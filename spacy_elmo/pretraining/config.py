"""The training config: sections of settings, each checked as it is made; read from JSON.

`elmo pretrain` reads a config as spaCy does (see `cli.pretrain_config`), and writes it as JSON,
which is read without spaCy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..bilm.config import TOKEN_ENCODERS, BiLMConfig
from ..util.files import read_json
from ..util.settings import Settings, above_zero, at_least, below_one, one_of, shorten
from ..weights.find import find_weights
from ..weights.native import Weights

CONFIG = "pretrain.json"  # in the directory of a run
STATES = {"zero": "zero", "carried": "warm"}  # [training] state: [model] initial_state
CORPORA = ("train", "dev")
Notify = Callable[[str], None]  # prints a message
# From a setting's name and value, what the value names.
Make = Callable[[str, Any, Notify], Any]


@dataclass(frozen=True)
class Paths(Settings):
    """``train``, ``dev``: a shard, a directory of shards, a pattern, or a list of these. ``vocab``:
    a file of one word per line, most frequent first; null to count the training shards, or to use
    the vocabulary of the head that training continues. ``weights``: a biLM to start from (see
    `find_weights`); null for random initialization. ``vectors``: the word vectors of a biLM whose
    ``token_encoder`` is "vectors": name or directory of a spaCy pipeline, or a file that
    `word_table.write_table` wrote; null where ``weights`` has its own."""

    title = "Config: [paths]"
    train: str | list[str] | None = None
    dev: str | list[str] | None = None
    vocab: str | None = None
    weights: str | list[str] | None = None
    vectors: str | None = None


@dataclass(frozen=True)
class VocabSettings(Settings):
    """Used when no vocabulary is given: its largest size, and how often a word must occur."""

    title = "Config: [vocab]"
    max_size: int = at_least(4, 50_000)
    min_count: int = at_least(1, 2)


@dataclass(frozen=True)
class CorpusSettings(Settings):
    """``max_words``: longer sentences are split. ``buffer_words``: words that are shuffled
    together in memory; a larger text is read through this buffer."""

    title = "Config: [corpus]"
    max_words: int = at_least(1, 100)
    buffer_words: int = at_least(1, 4_000_000)


@dataclass(frozen=True)
class SoftmaxSettings(Settings):
    """``kind``: "sampled" or "full". ``n_candidates``: distinct words drawn for each step; a
    vocabulary that has no more words than this is sampled by half."""

    title = "Config: [softmax]"
    kind: str = one_of("sampled", "full")
    n_candidates: int = at_least(1, 2048)


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """Steps of Adam, their schedule, and how often to log, evaluate and save.

    ``batch_words`` counts the boundaries too. The learning rate rises over ``warmup_steps``,
    stays, and falls to zero over the last ``decay_steps`` of ``max_steps``. ``eval_words``: words
    of the dev text read at an evaluation (0: all). ``matmul_precision``: PyTorch's name for the
    precision of float32 products in training ("medium": bfloat16 where that is faster);
    evaluations are at the highest. ``mixed_precision``: compute products in bfloat16; all else
    stays in float32, and so do the evaluations. ``accumulate_gradient``: micro-batches of a step,
    whose gradient is that of one batch of all their sentences, in the memory of one of them.
    ``checkpoint_seconds``: write a checkpoint at least this often. ``keep_checkpoints``: how many
    to keep; a run is resumed from ``checkpoint.safetensors``, the latest, and earlier ones have
    their step in their name, to be copied over it. ``max_epochs``: end after this many passes
    over the text, if they take fewer steps (0: no such limit); a longer schedule is shortened.
    ``head_first``: steps in which only the head learns, if it is new and the biLM is not.

    ``state``: what a sentence starts from, "zero", or "carried": the state in which the previous
    sentence of its stream ended, in ``n_streams`` streams of sentences in random order (a batch
    is then one sentence of each stream, and ``batch_words`` is not used). The published models
    were trained like that.

    ``train_vectors``: whether a table of word vectors is trained, all of it; false freezes it. The
    rows of the boundaries and of the unknown word are always trained.

    ``compiled_lstm``: compute the LSTM layers on a CPU with a kernel that is compiled at the start
    of the run (extra ``compile``, and a C++ compiler); its products take bfloat16 operands where
    ``mixed_precision`` is on, or ``matmul_precision`` is "medium" and they are faster. Where the
    kernel is not available, a message says why, and PyTorch's operators are used.

    ``logger``: a block ``[training.logger]`` that names one of spaCy's registered loggers, which
    then receives all that is logged.

    ``teacher``: a block ``[training.teacher]`` that names a registered function (``@misc``) which
    gives another model's vectors of sentences, see `teacher.Teacher`; a linear map of the layers
    learns them, too. ``teacher_weight``: of the distance, ``1 - cos`` for each word, in the loss
    that is logged.
    """

    title = "Config: [training]"
    seed: int = at_least(0, 0)
    batch_words: int = at_least(1, 2048)
    max_steps: int = at_least(1, 100_000)
    max_epochs: int = at_least(0, 0)
    head_first: int = at_least(0, 500)
    learning_rate: float = above_zero(0.001)
    warmup_steps: int = at_least(0, 500)
    decay_steps: int = at_least(0, 10_000)
    dropout: float = below_one(0.1)
    max_grad_norm: float = above_zero(1.0)
    matmul_precision: str = one_of("highest", "high", "medium")
    mixed_precision: bool = False
    accumulate_gradient: int = at_least(1, 1)
    eval_every: int = at_least(1, 1000)
    eval_words: int = at_least(0, 0)
    log_every: int = at_least(1, 50)
    checkpoint_seconds: float = at_least(0, 300.0)
    keep_checkpoints: int = at_least(1, 1)
    state: str = one_of(*STATES)
    n_streams: int = at_least(1, 64)
    train_vectors: bool = False
    compiled_lstm: bool = False
    logger: dict[str, Any] | None = None
    teacher: dict[str, Any] | None = None
    teacher_weight: float = above_zero(1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.warmup_steps + self.decay_steps > self.max_steps:
            raise self.error(
                "max_steps",
                f"it must be at least warmup_steps ({self.warmup_steps}) and decay_steps "
                f"({self.decay_steps}) together",
            )
        if self.logger is not None:
            _check_block("training.logger", self.logger, "@loggers")
        if self.teacher is not None:
            _check_block("training.teacher", self.teacher, "@misc")


SECTIONS: dict[str, type[Settings]] = {
    "paths": Paths,
    "vocab": VocabSettings,
    "corpus": CorpusSettings,
    "softmax": SoftmaxSettings,
    "training": TrainingSettings,
}


def without_spacy(name: str, value: Any, notify: Notify) -> Any:
    """Raise the error for a setting that names what only spaCy can make."""
    raise ValueError(
        f"Config: [{name}] is {shorten(value)}, which only spaCy can load: use `python -m spacy "
        f"elmo pretrain`, or do without. Texts may be shards, word vectors a *.safetensors file."
    )


@dataclass(frozen=True)
class PretrainConfig:
    """Settings of a run, and what they name, once it has been found.

    ``corpora``: blocks ``[corpora.train]`` and ``[corpora.dev]`` that name registered corpus
    readers, instead of the shards of [paths].

    The last two are no settings, and neither compared nor written: ``start``, the weights of
    [paths] weights; ``make``, which makes what only spaCy can: registered readers, logger and
    teacher, and the word vectors of a pipeline.

    Raises:
        ValueError: a section or setting is unknown, of the wrong type or out of range, or two of
            them contradict each other.
    """

    model: BiLMConfig
    paths: Paths = field(default_factory=Paths)
    vocab: VocabSettings = field(default_factory=VocabSettings)
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    corpora: dict[str, Any] = field(default_factory=dict)
    start: Weights | None = field(default=None, compare=False, repr=False)
    make: Make = field(default=without_spacy, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, block in self.corpora.items():
            if name not in CORPORA:
                raise ValueError(f"Config: unknown block [corpora.{name}]; known are {CORPORA}.")
            _check_block(f"corpora.{name}", block, "@readers")
            if getattr(self.paths, name) is not None:
                raise ValueError(
                    f"Config: both [corpora.{name}] and [paths] {name} are set; remove one, or "
                    f"set --paths.{name} null."
                )
        state = self.training.state
        if self.model.initial_state != STATES[state]:
            raise ValueError(
                f"Config: [model] initial_state is {self.model.initial_state!r}, but [training] "
                f'state = "{state}" requires "{STATES[state]}".'
            )
        if self.model.token_encoder != "vectors":
            advice = 'it is for word vectors: set [model] token_encoder = "vectors", or remove it'
            if self.paths.vectors is not None:
                raise self.paths.error("vectors", advice)
            if self.training.train_vectors:
                raise self.training.error("train_vectors", advice)
        elif self.paths.vectors is not None and self.paths.weights is not None:
            advice = "the biLM of [paths] weights has its own; remove one of the two"
            raise self.paths.error("vectors", advice)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Sections of plain JSON types."""
        sections = {name: asdict(getattr(self, name)) for name in SECTIONS}
        return {"model": self.model.to_dict(), **sections, "corpora": self.corpora}

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> PretrainConfig:
        """The config of sections of plain types; [paths] weights are found here."""
        known = ["model", *SECTIONS, "corpora"]
        unknown = sorted(set(data) - set(known))
        if unknown:
            raise ValueError(f"Config: unknown sections {unknown}; known are {known}.")
        for name, section in data.items():
            if not isinstance(section, Mapping):
                raise ValueError(f"Config: [{name}] is {shorten(section)}; give its settings.")
        sections: dict[str, Any] = {}
        for name, kind in SECTIONS.items():
            kind.check_names(data.get(name, {}))
            sections[name] = kind(**data.get(name, {}))
        weights = sections["paths"].weights
        start = None if weights is None else find_weights(weights)
        model = model_shape(data.get("model"), start, STATES[sections["training"].state])
        return cls(model=model, corpora=dict(data.get("corpora", {})), start=start, **sections)


def model_shape(data: Mapping[str, Any] | None, start: Weights | None, state: str) -> BiLMConfig:
    """The model's shape: the one in the config, or that of the weights to start from."""
    started = None if start is None else replace(start.config(), initial_state=state)
    if data is None:
        if started is None:
            raise ValueError(
                "Config: there is no [model] section. Add one, or give weights (--from)."
            )
        data = started.to_dict()
    try:
        config = BiLMConfig.from_dict({"initial_state": state, **data})
    except (TypeError, ValueError) as error:
        raise ValueError(f"Config: [model] {error}") from error
    if config.token_encoder == "char_word_cnn":
        raise ValueError(
            "Config: [model] token_encoder is 'char_word_cnn', as in models of ELMoForManyLangs, "
            "which cannot be pretrained; components can fine-tune them (frozen = false)."
        )
    if start is None or started is None:
        return config
    differences = [
        f"{name}: {value!r}, not {getattr(started, name)!r}"
        for name, value in asdict(config).items()
        if value != getattr(started, name)
        and not (value is None and name in TOKEN_ENCODERS["vectors"])  # sizes of the table
    ]
    if differences:
        raise ValueError(
            f"Config: [model] differs from the weights '{start.where}' to start from: "
            f"{'; '.join(differences)}. Remove the section: the shape comes with the weights."
        )
    return started


def read_config(
    path: Path, overrides: Mapping[str, Any] | None = None, resumed: Path | None = None
) -> PretrainConfig:
    """Read a config that `elmo pretrain` has written.

    Args:
        path: the JSON file.
        overrides: settings by ``section.name``.
        resumed: directory of a run to resume; see `build_config`.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    if path.suffix == ".cfg":
        raise ValueError(
            f"'{path}' is a config that only spaCy can load: give the {CONFIG} that `python -m "
            f"spacy elmo pretrain --config-only` writes."
        )
    data = read_json(path)
    override(data, overrides or {})
    return build_config(data, resumed)


def build_config(data: dict[str, Any], resumed: Path | None) -> PretrainConfig:
    """The config of sections of plain types.

    Args:
        data: the sections.
        resumed: directory of a run to resume. It no longer needs the weights and vectors that it
            started from, and its own config provides the [model] if this one has none.

    Raises:
        ValueError: a setting is wrong.
    """
    if resumed is not None:
        paths = data.get("paths", {})
        if isinstance(paths, dict):  # anything else is refused below
            data = {**data, "paths": {**paths, "weights": None, "vectors": None}}
        if "model" not in data:
            data["model"] = read_json(resumed / CONFIG).get("model")
            if not isinstance(data["model"], dict):
                raise ValueError(f"{resumed / CONFIG}: there is no [model] section.")
    return PretrainConfig.from_dict(data)


def override(data: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Put settings over those of a config, in new sections where it has none.

    Args:
        data: the sections.
        overrides: settings by ``section.name``.

    Raises:
        ValueError: a section is a setting.
    """
    for path, value in overrides.items():
        section = data
        *parts, setting = path.split(".")
        for part in parts:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):
                raise ValueError(
                    f"Config: '{part}' of [{'.'.join(parts)}] is a setting, not a section."
                )
        section[setting] = value


def split_overrides(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Take the overrides out of a command line.

    Args:
        arguments: among them ``--section.name value`` or ``--section.name=value``, in JSON; what is
            not JSON is a string.

    Returns:
        The settings by ``section.name``, and the other arguments.

    Raises:
        ValueError: an override has no value.
    """
    overrides: dict[str, Any] = {}
    others = []
    rest = iter(arguments)
    for argument in rest:
        key, equals, text = argument.partition("=")
        if not (key.startswith("--") and "." in key):
            others.append(argument)
            continue
        value: Any = text if equals else next(rest, None)
        if value is None:
            raise ValueError(f"The argument '{argument}' has no value.")
        with suppress(ValueError):
            value = json.loads(value)
        overrides[key.removeprefix("--").replace("-", "_")] = value
    return overrides, others


def _check_block(name: str, block: Any, registry: str) -> None:
    if not isinstance(block, dict) or not isinstance(block.get(registry), str):
        raise ValueError(f'Config: [{name}] must be a block with {registry} = "NAME".')
