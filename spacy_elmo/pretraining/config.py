"""The training config: sections of settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, get_args, get_origin, get_type_hints

from ..bilm.config import TOKEN_ENCODERS, BiLMConfig
from ..bilm.find import find_weights

PRECISIONS = ("highest", "high", "medium")
STATES = {"zero": "zero", "carried": "warm"}  # in training: the initial state of what is trained
CORPORA = ("train", "dev")
BLOCKS = ("logger",)  # settings that are blocks: there can be no line of null beside them


@dataclass
class Paths:
    """``train``, ``dev``: a shard, a directory of shards, a pattern, or a list of these. ``vocab``:
    a file of one word a line, most frequent first; null to count the training shards, or for the
    words of the head that is gone on with. ``weights``: a biLM to start from (see `find_weights`);
    null to start from random numbers. ``vectors``: the word vectors of a biLM whose
    ``token_encoder`` is "vectors": name or directory of a spaCy pipeline, or a file that
    `word_table.write_table` wrote; null where ``weights`` brings its own."""

    train: str | list[str] | None = None
    dev: str | list[str] | None = None
    vocab: str | None = None
    weights: str | list[str] | None = None
    vectors: str | None = None


@dataclass
class VocabSettings:
    """Used when no vocabulary is given: words at the most, and the rarest that is taken."""

    max_size: int = 50_000
    min_count: int = 2


@dataclass
class CorpusSettings:
    """``max_words``: longer sentences are cut into pieces. ``buffer_words``: words of the text that
    are shuffled together in memory; a larger text is read through this buffer."""

    max_words: int = 100
    buffer_words: int = 4_000_000


@dataclass
class SoftmaxSettings:
    """``kind``: "sampled" or "full". ``n_candidates``: distinct words drawn for each step."""

    kind: str = "sampled"
    n_candidates: int = 2048


@dataclass
class TrainingSettings:
    """The optimizer (Adam), its schedule, and when to look up from the work.

    ``batch_words`` counts the boundaries too. The learning rate rises over ``warmup_steps``,
    stays, and falls to zero over the last ``decay_steps`` of ``max_steps``. ``eval_words``: words
    of the dev text read at an evaluation (0: all). ``matmul_precision``: PyTorch's name for how
    float32 products may be rounded while training ("medium": bfloat16 where the machine has it).
    ``mixed_precision``: compute products in bfloat16; all else stays in float32, and so do the
    evaluations. ``accumulate_gradient``: batches of a step, whose
    gradient is that of one batch of all their sentences, in the memory of one of them.
    ``checkpoint_seconds``: a checkpoint at least this often. ``keep_checkpoints``: how many are
    kept; ``checkpoint.safetensors`` is the last of them, from which a run is resumed, and those
    before it are there under their steps, to be put in its place. ``max_epochs``: the run ends
    after so many passes over the text, if they take fewer steps (0: no such end); a schedule that
    is longer is shortened. ``head_first``: steps in which only the head learns, if it is new and
    the biLM is not.

    ``state``: what a sentence starts from, "zero", or "carried": the state in which the sentence
    before it, in one of ``n_streams`` streams of sentences in random order, has ended (a batch is
    then one sentence of each stream, and ``batch_words`` is not used). The published models were
    trained like that.

    ``train_vectors``: whether a table of word vectors learns too, all of it; false leaves it as it
    is. The rows of the boundaries and of the unknown word always learn.

    ``logger``: a block ``[training.logger]`` that names one of spaCy's registered loggers, which
    then sees all that is logged.
    """

    seed: int = 0
    batch_words: int = 2048
    max_steps: int = 100_000
    max_epochs: int = 0
    head_first: int = 500
    learning_rate: float = 0.001
    warmup_steps: int = 500
    decay_steps: int = 10_000
    dropout: float = 0.1
    max_grad_norm: float = 1.0
    matmul_precision: str = "highest"
    mixed_precision: bool = False
    accumulate_gradient: int = 1
    eval_every: int = 1000
    eval_words: int = 0
    log_every: int = 50
    checkpoint_seconds: float = 300.0
    keep_checkpoints: int = 1
    state: str = "zero"
    n_streams: int = 64
    train_vectors: bool = False
    logger: dict[str, Any] | None = None


@dataclass
class PretrainConfig:
    """All sections; see each for its settings.

    ``corpora``: blocks ``[corpora.train]`` and ``[corpora.dev]`` that name registered corpus
    readers, in the place of the shards of [paths].

    Raises:
        ValueError: a section or setting is unknown, of the wrong type or out of range.
    """

    model: BiLMConfig
    paths: Paths = field(default_factory=Paths)
    vocab: VocabSettings = field(default_factory=VocabSettings)
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    corpora: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, block in self.corpora.items():
            if name not in CORPORA:
                raise ValueError(f"Config: unknown block [corpora.{name}]; known are {CORPORA}.")
            _check_block(f"corpora.{name}", block, "@readers")
            if getattr(self.paths, name) is not None:
                raise ValueError(
                    f"Config: both [corpora.{name}] and [paths] {name} are there; remove one, or "
                    f"set --paths.{name} null."
                )
        if self.training.logger is not None:
            _check_block("training.logger", self.training.logger, "@loggers")
        for section, name in [
            ("vocab", "min_count"),
            ("corpus", "max_words"),
            ("corpus", "buffer_words"),
            ("softmax", "n_candidates"),
            ("training", "batch_words"),
            ("training", "accumulate_gradient"),
            ("training", "max_steps"),
            ("training", "eval_every"),
            ("training", "log_every"),
            ("training", "n_streams"),
            ("training", "keep_checkpoints"),
        ]:
            self._at_least(section, name, 1)
        self._at_least("vocab", "max_size", 4)
        for name in (
            "max_epochs", "head_first", "warmup_steps", "decay_steps", "eval_words", "seed"
        ):  # fmt: skip
            self._at_least("training", name, 0)
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self.training, name) > 0:
                self._refuse("training", name, "give a number above 0")
        if not self.training.checkpoint_seconds >= 0:
            self._refuse("training", "checkpoint_seconds", "give a number of at least 0")
        if not 0 <= self.training.dropout < 1:
            self._refuse("training", "dropout", "give a number from 0 to below 1")
        if self.softmax.kind not in ("sampled", "full"):
            self._refuse("softmax", "kind", 'known are "sampled" and "full"')
        if self.training.matmul_precision not in PRECISIONS:
            known = ", ".join(f'"{name}"' for name in PRECISIONS)
            self._refuse("training", "matmul_precision", f"known are {known}")
        if self.training.warmup_steps + self.training.decay_steps > self.training.max_steps:
            self._refuse(
                "training",
                "max_steps",
                f"it must be at least warmup_steps ({self.training.warmup_steps}) and "
                f"decay_steps ({self.training.decay_steps}) together",
            )
        if self.training.state not in STATES:
            known = " and ".join(f'"{name}"' for name in STATES)
            self._refuse("training", "state", f"known are {known}")
        if self.model.initial_state != STATES[self.training.state]:
            raise ValueError(
                f"Config: [model] initial_state is {self.model.initial_state!r}, but with "
                f'[training] state = "{self.training.state}" it has to be '
                f'"{STATES[self.training.state]}".'
            )
        if self.model.token_encoder != "vectors":
            advice = 'it is for word vectors: set [model] token_encoder = "vectors", or remove it'
            if self.paths.vectors is not None:
                self._refuse("paths", "vectors", advice)
            if self.training.train_vectors:
                self._refuse("training", "train_vectors", advice)
        elif self.paths.vectors is not None and self.paths.weights is not None:
            advice = "the biLM of [paths] weights brings its own; remove one of the two"
            self._refuse("paths", "vectors", advice)

    def _at_least(self, section: str, name: str, least: int) -> None:
        if getattr(getattr(self, section), name) < least:
            self._refuse(section, name, f"give a whole number of at least {least}")

    def _refuse(self, section: str, name: str, advice: str) -> None:
        value = getattr(getattr(self, section), name)
        raise ValueError(f"Config: [{section}] {name} is {value!r}; {advice}.")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Sections of plain JSON types."""
        sections = {section.name: getattr(self, section.name) for section in fields(self)}
        sections["model"] = self.model.to_dict()
        return {
            name: deepcopy(section) if isinstance(section, dict) else asdict(section)
            for name, section in sections.items()
        }

    def to_text(self) -> str:
        """The config as a file."""
        return "\n".join(_lines(self.to_dict(), ()))

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> PretrainConfig:
        """The config of sections of plain types."""
        sections = {
            "paths": Paths,
            "vocab": VocabSettings,
            "corpus": CorpusSettings,
            "softmax": SoftmaxSettings,
            "training": TrainingSettings,
        }
        known = ["model", *sections, "corpora"]
        unknown = sorted(set(data) - set(known))
        if unknown:
            raise ValueError(f"Config: unknown sections {unknown}; known are {known}.")
        built = {
            name: _section(name, settings, data.get(name, {}))
            for name, settings in sections.items()
        }
        state = STATES.get(built["training"].state, "zero")
        model = _model(data.get("model"), built["paths"].weights, state)
        return cls(model=model, corpora=dict(data.get("corpora", {})), **built)


def _model(
    data: Mapping[str, Any] | None, weights: str | list[str] | None, state: str
) -> BiLMConfig:
    """The model's shape: as it is given, or that of the weights to start from."""
    if data is None and weights is None:
        raise ValueError("Config: there is no [model] section.")
    given = started = None
    if data is not None:
        try:
            given = BiLMConfig.from_dict(data)
        except (TypeError, ValueError) as error:
            raise ValueError(f"Config: [model] {error}") from error
    if weights is not None:
        started = replace(find_weights(weights).config(), initial_state=state)
    if given is None or started is None:
        return given or started  # type: ignore[return-value]
    sizes = TOKEN_ENCODERS["vectors"]  # of its table; they need not be given
    both = [
        (name, value, getattr(started, name))
        for name, value in asdict(given).items()
        if value is not None or name not in sizes
    ]
    apart = [f"{name}: {value!r}, not {other!r}" for name, value, other in both if value != other]
    if apart:
        raise ValueError(
            f"Config: [model] is not that of the weights '{weights}' to start from: "
            f"{'; '.join(apart)}. Remove the section, the model is then that of the weights."
        )
    return started


def _section(name: str, kind: type, data: Mapping[str, Any]) -> Any:
    defaults = asdict(kind())
    unknown = sorted(set(data) - set(defaults))
    if unknown:
        raise ValueError(
            f"Config: [{name}] has unknown settings {unknown}; known are {sorted(defaults)}."
        )
    types = get_type_hints(kind)
    for setting, value in data.items():
        wanted = [get_origin(t) or t for t in get_args(types[setting]) or [types[setting]]]
        if float in wanted:
            wanted.append(int)
        if not isinstance(value, tuple(wanted)) or (isinstance(value, bool) and bool not in wanted):
            names = " or ".join("null" if t is type(None) else t.__name__ for t in wanted)
            raise ValueError(f"Config: [{name}] {setting} is {value!r}; expected {names}.")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise ValueError(f"Config: [{name}] {setting} is {value!r}; expected strings.")
    return kind(**data)


def _check_block(name: str, block: Any, registry: str) -> None:
    if not isinstance(block, dict) or not isinstance(block.get(registry), str):
        raise ValueError(f'Config: [{name}] has to be a block with {registry} = "NAME".')


def _lines(sections: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    """The lines of a config file, blocks after the settings of the section that they are in."""
    for name, section in sections.items():
        path = (*above, name)
        blocks = {key: value for key, value in section.items() if isinstance(value, dict)}
        yield f"[{'.'.join(path)}]"
        for key, value in section.items():
            if key not in blocks and not (key in BLOCKS and value is None):
                yield f"{key} = {json.dumps(value)}"
        yield ""
        yield from _lines(blocks, path)
