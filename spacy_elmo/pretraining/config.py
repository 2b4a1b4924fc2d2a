"""The training config: sections of settings, in the syntax of spaCy's config files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..bilm.config import BiLMConfig
from ..bilm.find import find_weights

PRECISIONS = ("highest", "high", "medium")
STATES = {"zero": "zero", "carried": "warm"}  # in training: the initial state of what is trained
REFERENCE = re.compile(r"\$\{(\w+)[.:](\w+)\}")


@dataclass
class Paths:
    """``train``, ``dev``: a shard or a directory of shards, or a list of them. ``vocab``: a file
    of one word a line, most frequent first; null to count the training shards, or for the words of
    the head that is gone on with. ``weights``: a biLM to start from (see `find_weights`); null to
    start from random numbers."""

    train: str | list[str] | None = None
    dev: str | list[str] | None = None
    vocab: str | None = None
    weights: str | list[str] | None = None


@dataclass
class VocabSettings:
    """Used when no vocabulary is given: words at the most, and the rarest that is taken."""

    max_size: int = 50_000
    min_count: int = 2


@dataclass
class CorpusSettings:
    """``max_words``: longer sentences are cut into pieces. ``shards_at_once``: files that are
    shuffled together in memory."""

    max_words: int = 100
    shards_at_once: int = 4


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
    ``mixed_precision``: compute in bfloat16 what bears it; the LSTMs, the losses and the parameters
    stay in float32, and so do the evaluations. ``accumulate_gradient``: batches of a step, whose
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


@dataclass
class PretrainConfig:
    """All sections; see each for its settings.

    Raises:
        ValueError: a section or setting is unknown, of the wrong type or out of range.
    """

    model: BiLMConfig
    paths: Paths = field(default_factory=Paths)
    vocab: VocabSettings = field(default_factory=VocabSettings)
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def __post_init__(self) -> None:
        for section, name in [
            ("vocab", "min_count"),
            ("corpus", "max_words"),
            ("corpus", "shards_at_once"),
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

    def _at_least(self, section: str, name: str, least: int) -> None:
        if getattr(getattr(self, section), name) < least:
            self._refuse(section, name, f"give a whole number of at least {least}")

    def _refuse(self, section: str, name: str, advice: str) -> None:
        value = getattr(getattr(self, section), name)
        raise ValueError(f"Config: [{section}] {name} is {value!r}; {advice}.")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Sections of plain JSON types."""
        return {section.name: asdict(getattr(self, section.name)) for section in fields(self)}

    def to_text(self) -> str:
        """The config as a file."""
        lines = []
        for section, settings in self.to_dict().items():
            lines += [f"[{section}]", *(f"{k} = {json.dumps(v)}" for k, v in settings.items()), ""]
        return "\n".join(lines)

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
        unknown = sorted(set(data) - set(sections) - {"model"})
        if unknown:
            raise ValueError(
                f"Config: unknown sections {unknown}; known are {['model', *sections]}."
            )
        built = {
            name: _section(name, settings, data.get(name, {}))
            for name, settings in sections.items()
        }
        state = STATES.get(built["training"].state, "zero")
        return cls(model=_model(data.get("model"), built["paths"].weights, state), **built)


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
    both = [(name, value, getattr(started, name)) for name, value in asdict(given).items()]
    apart = [f"{name}: {value!r}, not {other!r}" for name, value, other in both if value != other]
    if apart:
        raise ValueError(
            f"Config: [model] is not that of the weights '{weights}' to start from: "
            f"{'; '.join(apart)}. Remove the section, the model is then that of the weights."
        )
    return given


def _section(name: str, kind: type, data: Mapping[str, Any]) -> Any:
    defaults = asdict(kind())
    unknown = sorted(set(data) - set(defaults))
    if unknown:
        raise ValueError(
            f"Config: [{name}] has unknown settings {unknown}; known are {sorted(defaults)}."
        )
    for setting, value in data.items():
        default = defaults[setting]
        wanted: tuple[type, ...] = (type(default),)
        if default is None:
            wanted = (str, list, type(None)) if setting != "vocab" else (str, type(None))
        elif isinstance(default, float):
            wanted = (float, int)
        if not isinstance(value, wanted) or isinstance(value, bool) != isinstance(default, bool):
            names = " or ".join("null" if t is type(None) else t.__name__ for t in wanted)
            raise ValueError(f"Config: [{name}] {setting} is {value!r}; expected {names}.")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise ValueError(f"Config: [{name}] {setting} is {value!r}; expected strings.")
    return kind(**data)


def read_config(
    path: Path, overrides: Sequence[str] = (), run: Path | None = None
) -> PretrainConfig:
    """Read a config file and put command-line settings over it.

    Args:
        path: sections of ``name = value``, values in JSON. The value ``${section.name}`` is
            that of another setting, as it is after the overrides.
        overrides: as they stand on the command line, ``--section.name value`` or
            ``--section.name=value``.
        run: directory of a run that is to be resumed; it needs the weights no more that it was
            started from, and has a [model] if the config has none.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    # A line may end in a comment.
    parser = ConfigParser(interpolation=None, inline_comment_prefixes=("#",), strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ConfigParserError) as error:
        raise ValueError(f"Cannot read the config {path}: {error}") from error
    texts = {section: dict(parser[section]) for section in parser.sections()}
    for section, name, text in parse_overrides(overrides):
        texts.setdefault(section, {})[name] = text
    data = {
        section: {name: _value(section, name, text, texts) for name, text in settings.items()}
        for section, settings in texts.items()
    }
    if run is not None:
        data.get("paths", {}).pop("weights", None)
        if "model" not in data:
            data["model"] = asdict(read_config(run / "config.cfg", run=run).model)
    return PretrainConfig.from_dict(data)


def _value(section: str, name: str, text: str, texts: Mapping[str, Mapping[str, str]]) -> Any:
    """The value of a setting's text."""
    followed = text
    for _ in range(10):  # a reference may lead to another, but not in a circle
        reference = REFERENCE.fullmatch(followed)
        if reference is None:
            break
        followed = texts.get(reference[1], {}).get(reference[2], "")
    try:
        return json.loads(followed)
    except ValueError:
        advice = "is not JSON; strings need double quotes"
        if REFERENCE.fullmatch(text):
            advice = "refers to what is not there, or not JSON"
        raise ValueError(f"Config: [{section}] {name} = {text} {advice}.") from None


def start_from(weights: str | None) -> list[str]:
    """The override that ``--from`` stands for."""
    return [] if weights is None else [f"--paths.weights={json.dumps(weights)}"]


def split_overrides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """A command line parted into ``--section.name value`` settings and all else."""
    overrides, others = [], []
    rest = iter(arguments)
    for argument in rest:
        key, equals, _ = argument.partition("=")
        if not (key.startswith("--") and "." in key):
            others.append(argument)
            continue
        overrides.append(argument)
        if not equals:
            overrides += [value for value in [next(rest, None)] if value is not None]
    return overrides, others


def parse_overrides(arguments: Sequence[str]) -> list[tuple[str, str, str]]:
    """``--section.name value`` arguments as (section, name, JSON); values that are not JSON are
    taken as strings.

    Raises:
        ValueError: an argument is not of this form.
    """
    parsed = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        key, equals, text = argument.partition("=")
        section, dot, name = key.removeprefix("--").partition(".")
        if not key.startswith("--") or not dot:
            raise ValueError(
                f"Unknown argument '{argument}'; after CONFIG and OUT, settings of the config are "
                f"given as --section.name value."
            )
        if not equals:
            if not rest:
                raise ValueError(f"The argument '{argument}' has no value.")
            text = rest.pop(0)
        try:
            json.loads(text)
        except ValueError:
            text = text if REFERENCE.fullmatch(text) else json.dumps(text)
        parsed.append((section, name.replace("-", "_"), text))
    return parsed
