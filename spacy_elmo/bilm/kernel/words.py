"""A token encoder that the kernel computes.

The output of a filter at a position is a sum: each character adds a number at its place in the
filter. A table has these numbers, so no product is left to compute (Peters et al. 2018, §3.1, with
the convolution's sum in another order).
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch.nn import functional as F

from ..char_cnn import CharCNN
from ..char_word_cnn import CharWordCNN
from .library import EncoderStruct, Kernel, ProductStruct
from .packing import Product, check_float32


class KernelCharCNN:
    """Encodes words without gradients. The weights are packed once.

    Args:
        encoder: with weights in float32 on a CPU.
        kernel: computes it.
    """

    def __init__(self, encoder: CharCNN, kernel: Kernel):
        self.kernel, self.to_ids, width = kernel, encoder.to_ids, kernel.width
        filters = [each.weight.detach().permute(2, 0, 1) for each in encoder.convolutions]
        places = [F.pad(each, (0, 0, 0, -each.shape[1] % width)).flatten(0, 1) for each in filters]
        self._places = Product(torch.cat(places), None, width)
        self._characters = encoder.embedding.weight.detach().contiguous()
        self._words: torch.Tensor | None = None
        if isinstance(encoder, CharWordCNN):
            self._words = encoder.word_embedding.weight.detach()
        check_float32(self._characters, self._words, *(it.bias for it in encoder.convolutions))
        # A dictionary may have thousands of characters, of which a batch has some.
        self._tables = self._tables_of(self._characters) if self._words is None else None
        layers: Any = [layer for each in encoder.highways for layer in (each.carry, each.transform)]
        projection = [] if encoder.projection is None else [encoder.projection]
        self._products = [Product(it.weight, it.bias, width) for it in [*layers, *projection]]
        structs = [product.structs[0] for product in self._products]
        self._tensors = {
            "widths": torch.tensor([len(each) for each in filters], dtype=torch.int32),
            "numbers": torch.tensor([each.shape[1] for each in filters], dtype=torch.int32),
            "bias": torch.cat([each.bias.detach() for each in encoder.convolutions]),
        }
        self.n_features = len(self._tensors["bias"])
        self._struct = EncoderStruct(
            n_widths=len(filters), row=self._places.structs[0].columns,
            is_tanh=encoder.activation is torch.tanh, n_features=self.n_features,
            n_highways=len(encoder.highways),
        )  # fmt: skip
        self._struct.highways = (ProductStruct * len(layers))(*structs[: len(layers)])
        if projection:
            self._struct.projection = structs[-1]
        for name, tensor in self._tensors.items():
            setattr(self._struct, name, tensor.data_ptr())

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Ids of words to vectors ``(n_words, projection_dim)``; see `CharCNN.forward`."""
        if ids.dtype != torch.int64:
            raise ValueError("The ids of characters are int64.")
        characters, tables = (ids if self._words is None else ids[..., 0]) - 1, self._tables
        n_words, n_positions = characters.shape
        if n_words and not (characters.min() >= 0 and characters.max() < len(self._characters)):
            raise ValueError("A character has no embedding.")
        lengths = (characters != self.to_ids.padding - 1).sum(dim=1)
        sizes = self.to_ids.sizes(lengths).clamp(max=n_positions).to(torch.int32)
        if tables is None:
            found, characters = torch.unique(characters, return_inverse=True)
            tables = self._tables_of(self._characters[found])
        projection = self._struct.projection
        x = tables.new_empty(n_words, projection.inputs or self.n_features)
        if self._words is not None:
            x[:, : self._words.shape[1]] = self._words[ids[:, 0, 1]]
        out = x.new_empty(n_words, projection.columns) if projection.columns else x
        given = n_words, n_positions, characters.contiguous(), sizes, tables, x, out
        self.kernel.call("words", ctypes.byref(self._struct), *given)
        return out

    def _tables_of(self, characters: torch.Tensor) -> torch.Tensor:
        """What each of some characters, ``(n, char_dim)``, adds at each place in the filters."""
        tables = characters.new_empty(len(characters), self._places.structs[0].columns)
        product = ctypes.byref(self._places.structs[0])
        self.kernel.call("multiply", product, len(characters), characters, tables)
        return tables
