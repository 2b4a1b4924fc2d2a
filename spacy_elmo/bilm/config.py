"""The shape of a biLM: one dataclass, written to ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from ..util.settings import Settings, above_zero, in_range, one_of, option

INITIAL_STATES = ("zero", "warm")
# Of Unicode normalization. Lower case keeps these, but not the compatibility forms.
FORMS = ("NFC", "NFD")
DICTIONARIES = ("n_characters", "n_words", "vector_dim")  # sizes, of a char_word_cnn alone
# Larger values are mistakes, and would fill the memory or overflow before they are noticed.
MAX_LAYERS = MAX_FILTERS = 1000
MAX_UNITS = 2**20  # of any vector inside
MAX_CHARACTERS = 2**16
MAX_NUMBERS = 2**28  # of a matrix in the char-CNN, 1 GiB in float32
MAX_WORDS = 2**31 - 4  # a table's word ids are 32-bit integers

Filter = tuple[
    Annotated[int, Field(ge=1, le=MAX_CHARACTERS)], Annotated[int, Field(ge=1, le=MAX_UNITS)]
]


@dataclass(frozen=True)
class BiLMConfig(Settings):
    """The shape of a biLM: what decides how it computes, except its weights.

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
        unicode_normalization: the form in which words are read; None for as they are.
        lower_capitals: read a sentence in capitals, of three words at least, in lower case.
        token_encoder: computes x_k of a word: ``"char_cnn"`` from its bytes, ``"char_word_cnn"``
            from characters and words of dictionaries, as in ELMoForManyLangs.
        int8: the weights of the LSTMs' gates are whole numbers times a scale for each row, see
            `spacy_elmo.bilm.int8`; on a CPU, without gradients, their inputs are rounded, too.
        n_characters, n_words, vector_dim: entries of the dictionaries, and the size of a word's
            vector; None for a char-CNN of bytes.

    Raises:
        ValueError: a setting is out of range; the message names it.
    """

    title = "biLM config:"
    filters: tuple[tuple[int, int], ...] = option(kind=tuple[Filter, ...], max_length=MAX_FILTERS)
    projection_dim: int = in_range(1, MAX_UNITS)
    dim: int = in_range(1, MAX_UNITS)
    n_layers: int = in_range(1, MAX_LAYERS, 1)
    char_dim: int = in_range(1, MAX_UNITS, 16)
    activation: str = one_of("relu", "tanh")
    n_highway: int = in_range(0, MAX_LAYERS, 0)
    cell_clip: float | None = above_zero(None)
    proj_clip: float | None = above_zero(None)
    use_skip_connections: bool = True
    max_characters_per_token: int = in_range(3, MAX_CHARACTERS, 50)
    initial_state: str = one_of(*INITIAL_STATES)
    unicode_normalization: str | None = option(None, kind=Literal[FORMS] | None)
    lower_capitals: bool = False
    token_encoder: str = one_of("char_cnn", "char_word_cnn")
    int8: bool = False
    n_characters: int | None = in_range(1, MAX_WORDS, None)
    n_words: int | None = in_range(1, MAX_WORDS, None)
    vector_dim: int | None = in_range(1, MAX_UNITS, None)

    def __post_init__(self) -> None:
        filters: Any = self.filters
        if isinstance(filters, list):  # of lists, if they come from JSON
            pairs = (tuple(pair) if isinstance(pair, list) else pair for pair in filters)
            object.__setattr__(self, "filters", tuple(pairs))
        super().__post_init__()
        if self.projection_dim > self.dim:
            raise self.error(
                "projection_dim",
                f"it must not be larger than dim ({self.dim}); make it equal or smaller",
            )
        if not self.projects_cells:
            object.__setattr__(self, "proj_clip", None)
        self._check_filters()
        given = [name for name in DICTIONARIES if getattr(self, name) is not None]
        if len(given) != (len(DICTIONARIES) if self.token_encoder == "char_word_cnn" else 0):
            raise self.error(
                "token_encoder",
                f"'char_word_cnn' needs all of {', '.join(DICTIONARIES)}, 'char_cnn' none; found "
                f"{given}",
            )

    def _check_filters(self) -> None:
        most = self.max_characters_per_token
        if not 1 <= self.max_width <= most:
            raise self.error(
                "filters",
                f"give one [width, number] pair at least, and no width above "
                f"max_characters_per_token ({most})",
            )
        size = max(self.n_filters, most) * self.max_width * self.char_dim
        if self.n_filters > MAX_UNITS or size > MAX_NUMBERS:
            raise self.error(
                "filters",
                f"together they need too much memory: give {MAX_UNITS:,} filters at most, and "
                f"fewer or narrower ones, a smaller char_dim, or fewer max_characters_per_token",
            )

    @cached_property
    def n_filters(self) -> int:
        """Features of the char-CNN before its projection."""
        return sum(number for _, number in self.filters)

    @cached_property
    def max_width(self) -> int:
        """The widest filter of the char-CNN."""
        return max((width for width, _ in self.filters), default=0)

    @cached_property
    def width(self) -> int:
        """Size 2P of a token's vector."""
        return 2 * self.projection_dim

    @cached_property
    def depth(self) -> int:
        """The number of layers that a token gets, L + 1: the token layer and the LSTM layers."""
        return self.n_layers + 1

    @cached_property
    def projects_characters(self) -> bool:
        """True if the char-CNN ends in a projection, which it needs unless the sizes agree."""
        return self.token_encoder == "char_word_cnn" or self.n_filters != self.projection_dim

    @cached_property
    def projects_cells(self) -> bool:
        """True if the LSTMs project their cells, as they need to unless the sizes agree."""
        return self.projection_dim < self.dim

    @cached_property
    def layer_size(self) -> int:
        """Weights of an LSTM layer, of both directions."""
        P, D = self.projection_dim, self.dim
        return 2 * (4 * D * (2 * P + 1) + (D * P if self.projects_cells else 0))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, for ``config.json``; a char-CNN of bytes is not named."""
        is_named = self.token_encoder != "char_cnn"
        left_out = () if is_named else ("token_encoder", *DICTIONARIES)
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BiLMConfig:
        """The config that `to_dict` wrote.

        Raises:
            ValueError: a key is unknown, missing, or out of range.
        """
        cls.check_names(data)
        missing = [name for name in ("filters", "projection_dim", "dim") if name not in data]
        if missing:
            raise ValueError(f"biLM config: settings {missing} are missing.")
        return cls(**data)
