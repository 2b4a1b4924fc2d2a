"""A token encoder: byte ids to x_k through convolutions, highways and a projection."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .characters import N_CHARACTERS, CharacterIds
from .config import BiLMConfig
from .sentence_batches import to_device

FEATURES_AT_ONCE = 2**21  # 8 MiB of them in float32, near what a core's cache holds
ON_GPU = 64  # times as many there


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
    """

    convolutions: Any  # nn.ModuleList, for type checkers a list of nn.Conv1d

    def __init__(self, config: BiLMConfig):
        super().__init__()
        self.to_ids = CharacterIds.of(config)
        self.activation = torch.relu if config.activation == "relu" else torch.tanh
        # Ids start at 1, 0 is "no token": row 0 is not a parameter, so it is not here.
        # The published initialisation: bytes spread over [-1, 1].
        n_characters = config.n_characters or N_CHARACTERS
        bytes_ = nn.init.uniform_(torch.empty(n_characters, config.char_dim), -1.0, 1.0)
        self.embedding = nn.Embedding.from_pretrained(bytes_, freeze=False)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.char_dim, number, width) for width, number in config.filters
        )
        self.widths = np.repeat(*np.transpose(config.filters))  # (n_filters,)
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.n_highway))
        n_in, P = config.n_filters + (config.vector_dim or 0), config.projection_dim
        self.projection = nn.Linear(n_in, P) if config.projects_characters else None

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Ids of `to_ids`, ``(n_words, n_positions)``, to ``(n_words, projection_dim)`` vectors."""
        return self.project(self.read_characters(ids))

    def project(self, features: torch.Tensor) -> torch.Tensor:
        """Features of words to vectors ``(n_words, projection_dim)``."""
        x = features if self.projection is None else self.projection(features)
        return x.to(self.embedding.weight.dtype)  # under autocast

    def read_characters(self, char_ids: torch.Tensor) -> torch.Tensor:
        """Features ``(n_words, n_filters)`` of the characters ``(n_words, n_positions)``."""
        weight, bias = self._filters()
        maxima = self._maxima(char_ids, weight)  # in half precision under autocast
        x = self.activation(maxima + bias.to(maxima.dtype))  # (n_words, n_filters)
        for highway in self.highways:
            x = highway(x)
        return x

    def _maxima(self, char_ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The maximum of each filter over the positions of each word, ``(n_words, n_filters)``."""
        at_once = max(1, FEATURES_AT_ONCE // max(weight.shape))  # positions
        if char_ids.is_cuda:  # where sizes would have to be waited for
            n_words = max(1, ON_GPU * at_once // char_ids.shape[1])
            return torch.cat([self._convolve(ids, weight) for ids in char_ids.split(n_words)])
        sizes = self.to_ids.sizes((char_ids != self.to_ids.padding).sum(dim=1))
        sizes, order = sizes.sort(stable=True)  # words of similar length together
        counts = np.unique(sizes.numpy().cumsum() // at_once, return_counts=True)[1].tolist()
        groups = [
            self._convolve(char_ids[words, : int(size[-1])], weight)
            for words, size in zip(order.split(counts), sizes.split(counts), strict=True)
        ]
        return torch.cat(groups)[torch.argsort(order)]

    def _filters(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All filters as one matrix ``(n_filters, max_width · char_dim)``, and their biases.

        One product with all of them is much quicker than a convolution for each width.
        """
        by_position = [convolution.weight.mT for convolution in self.convolutions]
        longest = self.to_ids.max_width  # of (number, width, char_dim)
        weights = [F.pad(w, (0, 0, 0, longest - w.shape[1])).flatten(1) for w in by_position]
        return torch.cat(weights), torch.cat([each.bias for each in self.convolutions])

    def _convolve(self, char_ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Maxima of words of similar length, without the biases, ``(n_words, n_filters)``."""
        n_positions, longest = char_ids.shape[1], self.to_ids.max_width
        # Words that are cut short may end in windows that only narrow filters reach.
        is_full = n_positions == self.to_ids.max_characters
        char_ids = F.pad(char_ids, (0, longest - 1 if is_full else 0), value=self.to_ids.padding)
        windows = char_ids.unfold(1, longest, 1)  # (n_words, n_windows, longest)
        rows = self.embedding(windows.flatten(0, 1) - 1).flatten(1)
        x = F.linear(rows, weight).unflatten(0, windows.shape[:2])
        if is_full:
            beyond = np.arange(n_positions)[:, np.newaxis] + self.widths > n_positions
            x = x.masked_fill(to_device(beyond, x.device), -torch.inf)
        # The gradient of `amax` is shared among equal values, which costs more than all else here.
        # Values are equal where the bytes are (the padding): no parameter's gradient changes.
        return x.max(dim=1).values if x.requires_grad else x.amax(dim=1)
