"""What the models share: PyTorch modules that read the vectors of Docs, and places in them.

A module is called with ``rows``, the vectors of all tokens of a batch below a row of zeros, and
with arrays of indices of rows, in which 0 is padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Maxout, Model, PyTorchWrapper_v3, chain, with_array
from thinc.types import Floats2d
from thinc.util import torch2xp, xp2torch
from torch import Tensor, nn

Places = dict[str, Any]  # of a batch: arrays, which a module gets as keyword arguments


def read_places(
    tok2vec: Model[list[Doc], list[Floats2d]],
    width: int,
    module: nn.Module,
    places: Callable[[Sequence[Doc]], Places],
    output: Model | None = None,
) -> Model[list[Doc], Any]:
    """A PyTorch module on token vectors, which a Maxout layer brings to a width of their own.

    So the module does not depend on the width of ``tok2vec``, which a listener knows late.

    Args:
        tok2vec: any.
        width: of the rows that the module reads.
        module: see above; returns a tensor or a list of them.
        places: Docs to arrays.
        output: a layer behind the module.

    Returns:
        A model with the references ``tok2vec`` and, if there is one, ``output_layer``.
    """
    reduce: Any = with_array(Maxout(nO=width, nP=2, dropout=0.0, normalize=True))
    vectors = chain(tok2vec, reduce)
    inner = PyTorchWrapper_v3(module, convert_inputs=to_torch, convert_outputs=to_arrays)
    model: Any = Model(
        "read_places", forward, init=init, layers=[vectors, inner], attrs={"places": places}
    )
    if output is not None:
        model = chain(model, output)
        model.set_ref("output_layer", output)
    model.set_ref("tok2vec", tok2vec)
    return model


def init(model: Model, X: Sequence[Doc] | None = None, Y: Any = None) -> None:
    model.layers[0].initialize(X=X)


def forward(
    model: Model, docs: Sequence[Doc], is_train: bool
) -> tuple[Any, Callable[[Any], list[Doc]]]:
    vectors, inner = model.layers
    places = model.attrs["places"](docs)  # an error here comes before work
    X, backprop_X = vectors(docs, is_train)
    Y, backprop_Y = inner((X, places), is_train)

    def backprop(dY: Any) -> list[Doc]:
        return backprop_X(backprop_Y(dY))

    return Y, backprop


def to_torch(model: Model, inputs: tuple[list[Floats2d], Places], is_train: bool) -> Any:
    X, places = inputs
    width = X[0].shape[1]
    rows = xp2torch(
        model.ops.xp.concatenate([model.ops.alloc2f(1, width), *X]), requires_grad=is_train
    )
    tensors = {name: tensors_of(value, rows.device) for name, value in places.items()}

    def backprop(d_inputs: ArgsKwargs) -> list[Floats2d]:
        d_rows = d_inputs.args[0]
        if d_rows is None:
            return [model.ops.xp.zeros_like(x) for x in X]
        return model.ops.unflatten(torch2xp(d_rows)[1:], [len(x) for x in X])

    return ArgsKwargs(args=(rows,), kwargs=tensors), backprop


def tensors_of(value: Any, device: torch.device) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value).to(device)
    return [tensors_of(each, device) for each in value] if isinstance(value, list) else value


def to_arrays(model: Model, outputs: tuple[Any, Any], is_train: bool) -> Any:
    _, Y = outputs
    is_one = isinstance(Y, Tensor)
    tensors = [Y] if is_one else list(Y)
    arrays = [torch2xp(y) for y in tensors]

    def backprop(dY: Any) -> ArgsKwargs:
        pairs = zip(tensors, [dY] if is_one else dY, strict=True)
        known = [(y, xp2torch(d)) for y, d in pairs if d is not None and y.requires_grad]
        return ArgsKwargs(
            args=([y for y, _ in known],), kwargs={"grad_tensors": [d for _, d in known]}
        )

    return arrays[0] if is_one else arrays, backprop


def indices(bounds: Sequence[tuple[int, int]]) -> np.ndarray:
    """Rows of the spans of a batch, padded with 0 to the longest: ``(n, longest)``, at least 1.

    Args:
        bounds: first row of each span and the one behind its last, counted from 1.
    """
    longest = max([1, *(end - start for start, end in bounds)])
    found = np.zeros((len(bounds), longest), dtype="int64")
    for i, (start, end) in enumerate(bounds):
        found[i, : end - start] = np.arange(start, end)
    return found


def first_rows(docs: Sequence[Doc]) -> list[int]:
    """The row of the first token of each Doc."""
    return [1, *(1 + np.cumsum([len(doc) for doc in docs]))][: len(docs)]


def feed_forward(n_in: int, n_hidden: int, dropout: float, n_out: int | None = None) -> nn.Module:
    """Two layers with GELU; the second without one if its size is given."""
    layers = [nn.Linear(n_in, n_hidden), nn.GELU(), nn.Dropout(dropout)]
    if n_out is None:
        layers += [nn.Linear(n_hidden, n_hidden), nn.GELU()]
    else:
        layers += [nn.Linear(n_hidden, n_out)]
    return nn.Sequential(*layers)


def is_word(places: Tensor) -> Tensor:
    """Where rows are no padding; an empty text counts as one word, of zeros."""
    found = places > 0
    found[:, 0] = True
    return found


def softmax_over(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of the last dimension, of what is not masked."""
    return torch.softmax(scores.masked_fill(~mask, -1e4), dim=-1)


class BiLSTM(nn.Module):
    """Bidirectional LSTM over padded rows ``(batch, n, width)``, to ``(batch, n, 2 · hidden)``.

    One LSTM for each direction of a layer, the second one over reversed texts with their padding
    behind them: on a CPU, PyTorch is several times slower at learning from packed sequences.
    """

    def __init__(self, width: int, hidden: int, depth: int = 1, dropout: float = 0.0):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.LSTM(2 * hidden if i // 2 else width, hidden, batch_first=True)
            for i in range(2 * depth)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        steps = torch.arange(rows.shape[1], device=rows.device)
        back = torch.where(mask, mask.sum(1, keepdim=True) - 1 - steps, steps)
        for i in range(0, len(self.layers), 2):
            rows = self.dropout(rows) if i else rows
            ahead, _ = self.layers[i](rows)
            behind, _ = self.layers[i + 1](reorder(rows, back))
            rows = torch.cat([ahead, reorder(behind, back)], dim=-1)
        return rows * mask[..., None]


def reorder(rows: Tensor, places: Tensor) -> Tensor:
    """The rows ``(batch, n, width)`` of each text in the order of ``(batch, n)``."""
    return rows.gather(1, places[..., None].expand_as(rows))
