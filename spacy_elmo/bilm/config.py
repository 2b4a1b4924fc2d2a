"""The shape of a biLM: one dataclass, the same facts as a published ``options.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

ACTIVATIONS = ("relu", "tanh")
INITIAL_STATES = ("zero", "warm")
# The token encoders, and the settings that are theirs alone.
TOKEN_ENCODERS = {
    "char_cnn": ("filters", "char_dim", "activation", "n_highway", "max_characters_per_token"),
    "vectors": ("n_words", "n_vectors", "vector_dim"),
}
# More are a mistake, and would fill the memory or overflow before it is noticed.
MOST_LAYERS = MOST_FILTERS = 1000
MOST_UNITS = 2**20  # of any vector inside
MOST_CHARACTERS = 2**16
MOST_WORDS = 2**31 - 4  # ids of a table's words are numbers of 32 bits


@dataclass(frozen=True)
class BiLMConfig:
    """Everything that fixes the function a biLM computes, apart from its weights.

    Attributes:
        filters: ``(width, number)`` of each convolution of the char-CNN.
        projection_dim: size P of x_k and of each direction's output; token vectors have 2P.
        dim: cell size of the LSTMs, at least ``projection_dim``.
        n_layers: LSTM layers of each direction, at least 1.
        char_dim: size of a byte's embedding.
        activation: ``"relu"`` or ``"tanh"``, after the convolutions' max over positions.
        n_highway: highway layers between the convolutions and the projection.
        cell_clip: the LSTM's cell is clipped to ± this value; None for no clip.
        proj_clip: the same for the projected output; None where nothing is projected.
        use_skip_connections: layers 2 and up add their input to their output.
        max_characters_per_token: positions of a word, 2 of them for its markers.
        initial_state: the state every sentence starts from, ``"zero"`` or ``"warm"``.
        token_encoder: what makes x_k of a word: ``"char_cnn"``, of its characters, or
            ``"vectors"``, by a table of static word vectors. With this, ``filters`` is empty, and
            none of the char-CNN's settings (``TOKEN_ENCODERS``) may be given.
        n_words, n_vectors, vector_dim: words of such a table, its rows, and their size. None until
            there is one.

    Raises:
        ValueError: a setting is out of range; the message names it.
    """

    filters: tuple[tuple[int, int], ...]
    projection_dim: int
    dim: int
    n_layers: int = 1
    char_dim: int = 16
    activation: str = "relu"
    n_highway: int = 0
    cell_clip: float | None = None
    proj_clip: float | None = None
    use_skip_connections: bool = True
    max_characters_per_token: int = 50
    initial_state: str = "zero"
    token_encoder: str = "char_cnn"
    n_words: int | None = None
    n_vectors: int | None = None
    vector_dim: int | None = None

    def __post_init__(self) -> None:
        self._check_choice("token_encoder", tuple(TOKEN_ENCODERS))
        if self.token_encoder == "vectors":
            self._check_table()
        else:
            self._check_char_cnn()
        for name in ("projection_dim", "dim"):
            self._check_int(name, 1, MOST_UNITS)
        self._check_int("n_layers", 1, MOST_LAYERS)
        if self.projection_dim > self.dim:
            raise ValueError(
                f"biLM config: 'projection_dim' ({self.projection_dim}) is larger than "
                f"'dim' ({self.dim}); make it equal or smaller."
            )
        for name in ("cell_clip", "proj_clip"):
            clip = getattr(self, name)
            if clip is not None and not (_is_number(clip, int, float) and 0 < clip < math.inf):
                raise ValueError(
                    f"biLM config: '{name}' is {clip!r}; give a number above 0, or null for none."
                )
        if not self.projects_cells:
            object.__setattr__(self, "proj_clip", None)
        if not isinstance(self.use_skip_connections, bool):
            raise ValueError(
                f"biLM config: 'use_skip_connections' is {self.use_skip_connections!r}; "
                f"give true or false."
            )
        self._check_choice("initial_state", INITIAL_STATES)
        defaults = {field.name: field.default for field in fields(self)} | {"filters": ()}
        others = self._others_settings()
        _refuse(self.token_encoder, [n for n in others if getattr(self, n) != defaults[n]])

    def _check_char_cnn(self) -> None:
        try:
            filters = tuple((width, number) for width, number in self.filters)
        except (TypeError, ValueError):
            filters = ()
        if not 1 <= len(filters) <= MOST_FILTERS or not all(
            _is_number(n, int) for pair in filters for n in pair
        ):
            raise ValueError(
                f"biLM config: 'filters' must be a list of [width, number] pairs of whole "
                f"numbers, from one to {MOST_FILTERS:,} of them, found {_short(self.filters)}."
            )
        object.__setattr__(self, "filters", filters)
        self._check_int("char_dim", 1, MOST_UNITS)
        self._check_int("n_highway", 0, MOST_LAYERS)
        self._check_int("max_characters_per_token", 3, MOST_CHARACTERS)
        for width, number in filters:
            if not 1 <= width <= self.max_characters_per_token or not 1 <= number <= MOST_UNITS:
                raise ValueError(
                    f"biLM config: 'filters' has [{width}, {number}]; a width must lie between "
                    f"1 and max_characters_per_token ({self.max_characters_per_token}), "
                    f"a number between 1 and {MOST_UNITS:,}."
                )
        self._check_choice("activation", ACTIVATIONS)

    def _check_table(self) -> None:
        object.__setattr__(self, "filters", tuple(self.filters or ()))
        if self.vector_dim is not None:
            self._check_int("vector_dim", 1, MOST_UNITS)
        for name in ("n_words", "n_vectors"):
            if getattr(self, name) is not None:
                self._check_int(name, 1, MOST_WORDS)

    def check_whole(self) -> None:
        """Raise a ValueError if there is a table of word vectors, but its size is not known."""
        missing = [name for name in TOKEN_ENCODERS["vectors"] if getattr(self, name) is None]
        if self.token_encoder == "vectors" and missing:
            raise ValueError(
                f"biLM config: with token_encoder = 'vectors', the settings {missing} have to say "
                f"how large the table is."
            )

    def _others_settings(self) -> list[str]:
        """Settings of the token encoders that this one has not."""
        others = (names for kind, names in TOKEN_ENCODERS.items() if kind != self.token_encoder)
        return [name for names in others for name in names]

    def _check_int(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if not _is_number(value, int) or not least <= value <= most:
            raise ValueError(
                f"biLM config: '{name}' is {value!r}; give a whole number from {least} to {most:,}."
            )

    def _check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise ValueError(
                f"biLM config: '{name}' is {value!r}; known are {', '.join(map(repr, choices))}."
            )

    @property
    def n_filters(self) -> int:
        """Features of the char-CNN before its projection."""
        return sum(number for _, number in self.filters)

    @property
    def max_width(self) -> int:
        """The widest filter of the char-CNN."""
        return max(width for width, _ in self.filters)

    @property
    def width(self) -> int:
        """Size 2P of a token's vector."""
        return 2 * self.projection_dim

    @property
    def projects_characters(self) -> bool:
        """Whether the char-CNN ends in a projection (none where the sizes agree already)."""
        return self.n_filters != self.projection_dim

    @property
    def projects_cells(self) -> bool:
        """Whether the LSTMs project their cells (none where the sizes agree already)."""
        return self.projection_dim < self.dim

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, for ``config.json``: of the token encoders' settings those it has.

        That it is a char-CNN is not said, as in what was written when there was no other.
        """
        left_out = set(self._others_settings())
        if self.token_encoder == "char_cnn":
            left_out.add("token_encoder")
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BiLMConfig:
        """The config that `to_dict` wrote.

        Raises:
            ValueError: a key is unknown, missing, or out of range.
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise ValueError(
                f"biLM config: unknown settings {unknown}; known are {sorted(known)}. "
                f"Was it written by a newer spacy-elmo?"
            )
        needed = ["filters", "projection_dim", "dim"]
        token_encoder = data.get("token_encoder", "char_cnn")
        if token_encoder == "vectors":
            _refuse(token_encoder, [name for name in TOKEN_ENCODERS["char_cnn"] if name in data])
        if token_encoder != "char_cnn":
            data = {"filters": (), **data}
        missing = [name for name in needed if name not in data]
        if missing:
            raise ValueError(f"biLM config: settings {missing} are missing.")
        return cls(**data)

    def to_options(self) -> dict[str, Any]:
        """The same facts in the layout of a published ``options.json``.

        Raises:
            ValueError: there is no char-CNN.
        """
        if self.token_encoder != "char_cnn":
            raise ValueError(
                f"The published layout (options.json and HDF5) is for biLMs with a char-CNN; this "
                f"one has token_encoder = {self.token_encoder!r}, which no other implementation "
                f"reads. Write our own layout (elmo convert --to own)."
            )
        return {
            "bidirectional": True,
            "lstm": {
                "dim": self.dim,
                "projection_dim": self.projection_dim,
                "n_layers": self.n_layers,
                "use_skip_connections": self.use_skip_connections,
                "cell_clip": self.cell_clip,  # also if null: the reference implementation asks
                "proj_clip": self.proj_clip,
            },
            "char_cnn": {
                "activation": self.activation,
                "embedding": {"dim": self.char_dim},
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.n_highway,
                "n_characters": 262,
                "max_characters_per_token": self.max_characters_per_token,
            },
            "spacy_elmo": {"initial_state": self.initial_state},  # others pass over it
        }

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> BiLMConfig:
        """Read a published ``options.json``, training or inference form.

        The models were trained with a carried state, so theirs is warm, unless the options are
        of `to_options` and say something else.

        Raises:
            ValueError: the model is not a char-CNN biLM, or a setting is missing or wrong.
        """
        if "char_cnn" not in options:
            raise ValueError(
                "options.json: there is no 'char_cnn' block, so this model reads word ids, not "
                "characters. Only biLMs with a character CNN can be loaded."
            )
        if "lstm" not in options:
            raise ValueError("options.json: there is no 'lstm' block.")
        for name in ("char_cnn", "lstm", "spacy_elmo"):
            _check_block(options, name)
        _check_block(options["char_cnn"], "embedding")
        if options.get("bidirectional", True) is False:
            raise ValueError(
                "options.json: 'bidirectional' is false; only bidirectional models can be loaded."
            )
        cnn, lstm = options["char_cnn"], options["lstm"]
        ours = options.get("spacy_elmo", {})
        try:
            return cls(
                filters=cnn["filters"],
                projection_dim=lstm["projection_dim"],
                dim=lstm["dim"],
                n_layers=lstm.get("n_layers", 1),
                char_dim=cnn["embedding"]["dim"],
                activation=cnn["activation"],
                n_highway=cnn.get("n_highway") or 0,
                cell_clip=lstm.get("cell_clip"),
                proj_clip=lstm.get("proj_clip"),
                use_skip_connections=lstm.get("use_skip_connections", False),
                max_characters_per_token=cnn.get("max_characters_per_token", 50),
                initial_state=ours.get("initial_state", "warm"),
            )
        except KeyError as missing:
            raise ValueError(f"options.json: the setting {missing} is missing.") from None
        except TypeError as error:
            raise ValueError(f"options.json: {error}") from error


def _refuse(token_encoder: str, names: Sequence[str]) -> None:
    """Raise a ValueError if there are settings of another token encoder."""
    if names:
        raise ValueError(
            f"biLM config: the settings {sorted(names)} are not for token_encoder = "
            f"{token_encoder!r}; remove them, or set another token_encoder (known are "
            f"{', '.join(map(repr, TOKEN_ENCODERS))})."
        )


def _check_block(options: Mapping[str, Any], name: str) -> None:
    """Raise a ValueError if a setting is there, but is no block of settings."""
    if name in options and not isinstance(options[name], Mapping):
        raise ValueError(f"options.json: '{name}' is {_short(options[name])}, not a block.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _is_number(value: Any, *kinds: type) -> bool:
    """Whether a value is of one of these types; Python's truth values are not numbers."""
    return isinstance(value, kinds) and not isinstance(value, bool)
