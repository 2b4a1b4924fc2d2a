"""A token encoder: byte ids to x_k through convolutions, highways and a projection."""

from __future__ import annotations

import torch
from torch import nn

from .characters import N_CHARACTERS, CharacterIds
from .config import BiLMConfig
from .precision import require_ieee_float32

WORDS_AT_ONCE, FEATURES_AT_ONCE = 512, 2**21  # bound padding and memory


class Highway(nn.Module):
    """``y = g · relu(x·W_t + b_t) + (1 − g) · x`` with ``g = σ(x·W_c + b_c)``."""

    def __init__(self, size: int):
        super().__init__()
        self.carry = nn.Linear(size, size)
        self.transform = nn.Linear(size, size)
        # Mostly pass the input on at first, as the published models were initialised.
        nn.init.constant_(self.carry.bias, -2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.carry(x))
        return torch.lerp(x, torch.relu(self.transform(x)), gate)


class CharCNN(nn.Module):
    """Encodes words from their bytes alone (Peters et al. 2018, §3.1; Kim et al. 2016).

    Attributes:
        to_ids: words to the ids that `forward` takes.
        words_at_once: words that `BiLM.encode` passes to `forward` together.
    """

    def __init__(self, config: BiLMConfig):
        super().__init__()
        self.to_ids = CharacterIds(config.max_width, config.max_characters_per_token)
        widest = max(number for _, number in config.filters) * config.max_characters_per_token
        self.words_at_once = max(1, min(WORDS_AT_ONCE, FEATURES_AT_ONCE // widest))
        self.activation = torch.relu if config.activation == "relu" else torch.tanh
        # Ids start at 1, 0 is "no token": row 0 is not a parameter, so it is not here.
        # The published initialisation: bytes spread over [-1, 1].
        bytes_ = nn.init.uniform_(torch.empty(N_CHARACTERS, config.char_dim), -1.0, 1.0)
        self.embedding = nn.Embedding.from_pretrained(bytes_, freeze=False)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.char_dim, number, width) for width, number in config.filters
        )
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.n_highway))
        self.projection = (
            nn.Linear(config.n_filters, config.projection_dim)
            if config.projects_characters
            else None
        )

    def forward(self, char_ids: torch.Tensor) -> torch.Tensor:
        """``(n_words, n_positions)`` ids to ``(n_words, projection_dim)`` vectors."""
        require_ieee_float32(char_ids)
        chars = self.embedding(char_ids - 1).transpose(1, 2)  # (n_words, char_dim, n_positions)
        x = torch.cat([_maximum(conv(chars)) for conv in self.convolutions], dim=1)
        x = self.activation(x)  # (n_words, n_filters)
        for highway in self.highways:
            x = highway(x)
        return x if self.projection is None else self.projection(x)


def _maximum(x: torch.Tensor) -> torch.Tensor:
    """The maximum over positions, ``(n_words, n, n_positions)`` to ``(n_words, n)``.

    The gradient of `amax` is shared among equal values, which costs more than all else here.
    Values are equal where the bytes are (the padding), so that no parameter's gradient changes.
    """
    return x.max(dim=2).values if x.requires_grad else x.amax(dim=2)
