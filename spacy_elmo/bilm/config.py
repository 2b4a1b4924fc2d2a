"""The shape of a biLM: one dataclass, written to ``config.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

INITIAL_STATES = ("zero", "warm")
# The token encoders, and the settings that are theirs alone.
TOKEN_ENCODERS = {
    "char_cnn": ("filters", "char_dim", "activation", "n_highway", "max_characters_per_token"),
    "vectors": ("n_words", "n_vectors", "vector_dim"),
}
CHOICES = {
    "token_encoder": tuple(TOKEN_ENCODERS),
    "activation": ("relu", "tanh"),
    "initial_state": INITIAL_STATES,
}
# Larger values are mistakes, and would fill the memory or overflow before they are noticed.
MAX_LAYERS = MAX_FILTERS = 1000
MAX_UNITS = 2**20  # of any vector inside
MAX_CHARACTERS = 2**16
MAX_WORDS = 2**31 - 4  # a table's word ids are 32-bit integers
RANGES = {
    "projection_dim": (1, MAX_UNITS),
    "dim": (1, MAX_UNITS),
    "n_layers": (1, MAX_LAYERS),
    "char_dim": (1, MAX_UNITS),
    "n_highway": (0, MAX_LAYERS),
    "max_characters_per_token": (3, MAX_CHARACTERS),
    "n_words": (1, MAX_WORDS),
    "n_vectors": (1, MAX_WORDS),
    "vector_dim": (1, MAX_UNITS),
}


@dataclass(frozen=True)
class BiLMConfig:
    """What a biLM computes, apart from its weights.

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
        max_characters_per_token: positions of a word, including 2 for its markers.
        initial_state: the state every sentence starts from, ``"zero"`` or ``"warm"``.
        token_encoder: computes x_k of a word: ``"char_cnn"`` from its characters, ``"vectors"``
            from a table of static word vectors. With the latter, ``filters`` is empty, and none of
            the char-CNN's settings (``TOKEN_ENCODERS``) may be given.
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
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise _error(name, value, f"known are {', '.join(map(repr, choices))}")
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if value is None and name in TOKEN_ENCODERS["vectors"]:
                continue
            if not _is_number(value, int) or not least <= value <= most:
                raise _error(name, value, f"give a whole number from {least} to {most:,}")
        if self.projection_dim > self.dim:
            raise ValueError(
                f"biLM config: 'projection_dim' ({self.projection_dim}) is larger than "
                f"'dim' ({self.dim}); make it equal or smaller."
            )
        for name in ("cell_clip", "proj_clip"):
            clip = getattr(self, name)
            if clip is not None and not (_is_number(clip, int, float) and 0 < clip < math.inf):
                raise _error(name, clip, "give a number above 0, or null for none")
        if not isinstance(self.use_skip_connections, bool):
            raise _error("use_skip_connections", self.use_skip_connections, "give true or false")
        if not self.projects_cells:
            object.__setattr__(self, "proj_clip", None)
        if self.token_encoder == "char_cnn":
            self._check_filters()
        else:
            object.__setattr__(self, "filters", tuple(self.filters or ()))
        defaults = {field.name: field.default for field in fields(self)} | {"filters": ()}
        others = self._foreign_settings()
        _refuse(self.token_encoder, [n for n in others if getattr(self, n) != defaults[n]])

    def _check_filters(self) -> None:
        try:
            filters = tuple((width, number) for width, number in self.filters)
        except (TypeError, ValueError):
            filters = ()
        if not 1 <= len(filters) <= MAX_FILTERS or not all(
            _is_number(n, int) for pair in filters for n in pair
        ):
            raise ValueError(
                f"biLM config: 'filters' must be a list of [width, number] pairs of whole "
                f"numbers, from one to {MAX_FILTERS:,} of them, found {shorten(self.filters)}."
            )
        for width, number in filters:
            if not 1 <= width <= self.max_characters_per_token or not 1 <= number <= MAX_UNITS:
                raise ValueError(
                    f"biLM config: 'filters' has [{width}, {number}]; a width must lie between "
                    f"1 and max_characters_per_token ({self.max_characters_per_token}), "
                    f"a number between 1 and {MAX_UNITS:,}."
                )
        object.__setattr__(self, "filters", filters)

    def check_complete(self) -> None:
        """Raise a ValueError if there is a table of word vectors of unknown size."""
        missing = [name for name in TOKEN_ENCODERS["vectors"] if getattr(self, name) is None]
        if self.token_encoder == "vectors" and missing:
            raise ValueError(
                f"biLM config: token_encoder = 'vectors' needs the size of the table; the settings "
                f"{missing} are missing."
            )

    def _foreign_settings(self) -> list[str]:
        """Settings that only other token encoders have."""
        others = (names for kind, names in TOKEN_ENCODERS.items() if kind != self.token_encoder)
        return [name for names in others for name in names]

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
        """Plain JSON types, for ``config.json``, without the settings of other token encoders.

        ``token_encoder`` is left out for a char-CNN, as when there was no other.
        """
        left_out = set(self._foreign_settings())
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
        token_encoder = data.get("token_encoder", "char_cnn")
        if token_encoder == "vectors":
            _refuse(token_encoder, [name for name in TOKEN_ENCODERS["char_cnn"] if name in data])
        if token_encoder != "char_cnn":
            data = {"filters": (), **data}
        missing = [name for name in ("filters", "projection_dim", "dim") if name not in data]
        if missing:
            raise ValueError(f"biLM config: settings {missing} are missing.")
        return cls(**data)


def _refuse(token_encoder: str, names: Sequence[str]) -> None:
    """Raise a ValueError if there are settings of other token encoders."""
    if names:
        raise ValueError(
            f"biLM config: the settings {sorted(names)} are not for token_encoder = "
            f"{token_encoder!r}; remove them, or set another token_encoder (known are "
            f"{', '.join(map(repr, TOKEN_ENCODERS))})."
        )


def _error(name: str, value: Any, advice: str) -> ValueError:
    return ValueError(f"biLM config: '{name}' is {shorten(value)}; {advice}.")


def shorten(value: Any) -> str:
    """The repr of a value, short enough for an error message."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _is_number(value: Any, *kinds: type) -> bool:
    """Whether a value is of one of these types; booleans are not numbers."""
    return isinstance(value, kinds) and not isinstance(value, bool)
