"""A token encoder that the kernel computes.

The output of a filter at a position is a sum: each character adds a number at its place in the
filter. A table has these numbers, so no product is left to compute (Peters et al. 2018, §3.1, with
the convolution's sum in another order).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch

from ..char_cnn import CharCNN
from ..char_word_cnn import CharWordCNN
from .library import FiltersStruct, Kernel, pointer
from .packing import Product


class KernelCharCNN:
    """Encodes words without gradients. The weights are packed once.

    Args:
        encoder: with weights in float32 on a CPU.
        kernel: computes it.
    """

    def __init__(self, encoder: CharCNN, kernel: Kernel):
        self.kernel, self.to_ids, width = kernel, encoder.to_ids, kernel.width
        self.is_tanh = encoder.activation is torch.tanh
        filters = [each.weight.detach().permute(2, 0, 1) for each in encoder.convolutions]
        self.widths = np.array([len(each) for each in filters], dtype=np.int32)
        self.numbers = np.array([each.shape[1] for each in filters], dtype=np.int32)
        self.bias = torch.cat([each.bias.detach() for each in encoder.convolutions])
        places = [torch.nn.functional.pad(w, (0, 0, 0, -w.shape[1] % width)) for w in filters]
        self._places = Product(torch.cat([w.flatten(0, 1) for w in places]), None, width)
        self._characters = encoder.embedding.weight.detach().clone()
        self._words: torch.Tensor | None = None
        if has_words := isinstance(encoder, CharWordCNN):
            self._words = encoder.word_embedding.weight.detach()
        # A dictionary may have thousands of characters, of which a batch has some.
        self._tables = None if has_words else self._multiply(self._places, self._characters)
        pairs: Any = [(each.carry, each.transform) for each in encoder.highways]
        self._highways = [[self._product(layer) for layer in pair] for pair in pairs]
        last = encoder.projection
        self._projection = None if last is None else self._product(last)

    def _product(self, layer: torch.nn.Linear) -> Product:
        return Product(layer.weight, layer.bias, self.kernel.width)

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Ids of words to vectors ``(n_words, projection_dim)``; see `CharCNN.forward`."""
        if self._words is None:
            characters, tables = ids - 1, self._tables
        else:
            found, characters = torch.unique(ids[..., 0] - 1, return_inverse=True)
            tables = self._multiply(self._places, self._characters[found])
        assert tables is not None
        lengths = (characters_of(ids) != self.to_ids.padding).sum(dim=1)
        x = self._filter(tables, characters.contiguous(), self.to_ids.sizes(lengths))
        for products in self._highways:
            carry, transform = (self._multiply(product, x) for product in products)
            self.kernel.call("highway", ctypes.c_int64(x.numel()), carry, transform, x)
        if self._words is not None:
            x = torch.cat([self._words[ids[:, 0, 1]], x], dim=1)
        return x if self._projection is None else self._multiply(self._projection, x)

    def _filter(
        self, tables: torch.Tensor, rows: torch.Tensor, sizes: torch.Tensor
    ) -> torch.Tensor:
        """Features ``(n_words, n_filters)`` of words by the tables' rows of their characters."""
        n_words, n_positions = rows.shape
        if rows.dtype != torch.int64:
            raise ValueError("The ids of characters are int64.")
        if n_words and not (rows.min() >= 0 and rows.max() < len(tables)):
            raise ValueError("A character has no embedding.")
        given = tables, self.bias
        struct = FiltersStruct(len(self.widths), tables.shape[1], self.is_tanh)
        struct.widths, struct.numbers = (pointer(each) for each in (self.widths, self.numbers))
        struct.tables, struct.bias = map(pointer, given)
        out = tables.new_empty(n_words, len(self.bias))
        sizes = sizes.clamp(max=n_positions).to(torch.int32)
        self.kernel.call("filters", ctypes.byref(struct), n_words, n_positions, rows, sizes, out)
        return out

    def _multiply(self, product: Product, x: torch.Tensor) -> torch.Tensor:
        """``(n, inputs)`` to ``(n, columns)``."""
        assert x.dtype == torch.float32 and x.shape[1] == product.struct.inputs
        out = x.new_empty(len(x), product.struct.columns)
        self.kernel.call("linear", ctypes.byref(product.struct), len(x), x.contiguous(), out)
        return out


def characters_of(ids: torch.Tensor) -> torch.Tensor:
    """The ids of the characters alone, ``(n_words, n_positions)``."""
    return ids if ids.dim() == 2 else ids[..., 0]
