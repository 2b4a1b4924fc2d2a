"""The datasets of the published HDF5 layout, and the parameters of a `BiLM` that they contain.

They are a TensorFlow model's variables: inputs times weights, gates in the order i, j, f, o. The
+1 of the forget gate is in neither of the two. One parameter is made at a time, so that nothing
is in memory twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch

from ...bilm.characters import N_CHARACTERS
from ...bilm.config import BiLMConfig
from ...util.files import reading

Shape = tuple[int, ...]


def swap_gates(gates: np.ndarray) -> np.ndarray:
    """``(…, 4D)`` with gates i, j, f, o to i, f, g (= j), o; and back."""
    i, j, f, o = np.split(gates, 4, axis=-1)
    return np.concatenate([i, f, j, o], axis=-1)


# From a dataset to a parameter, and back. Of a vector, transposing changes nothing.
Conversion = tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]
PLAIN: Conversion = (lambda x: x, lambda x: x)
MATRIX: Conversion = (np.transpose, np.transpose)
KERNEL: Conversion = (lambda x: x[0].T, lambda x: x.T[None])
GATES: Conversion = (lambda x: swap_gates(x).T, lambda x: swap_gates(x.T))


class Piece(NamedTuple):
    """A piece of a dataset, and the parameter (or direction of one) that it is.

    Attributes:
        dataset, shape: the dataset's name and shape.
        parameter: the parameter's name.
        conversion: between the two.
        direction: index of the parameter's first axis; None for all of it.
        rows: of the dataset.
    """

    dataset: str
    shape: Shape
    parameter: str
    conversion: Conversion = MATRIX
    direction: int | None = None
    rows: slice = slice(None)


def pieces(config: BiLMConfig) -> Iterator[Piece]:
    """The pieces of all datasets of a biLM's encoder; those of one dataset follow each other."""
    n_filters, P, D, dim = config.n_filters, config.projection_dim, config.dim, config.char_dim
    # Some files have a row for the id 0 in front, which is never read.
    rows = slice(-N_CHARACTERS, None)
    name = "char_cnn.embedding.weight"
    yield Piece("char_embed", (N_CHARACTERS, dim), name, PLAIN, rows=rows)
    for i, (width, number) in enumerate(config.filters):
        name, shape = f"char_cnn.convolutions.{i}", (1, width, dim, number)
        yield Piece(f"CNN/W_cnn_{i}", shape, f"{name}.weight", KERNEL)
        yield Piece(f"CNN/b_cnn_{i}", (number,), f"{name}.bias")
    for k in range(config.n_highway):
        for gate in ("carry", "transform"):
            dataset, name = f"CNN_high_{k}", f"char_cnn.highways.{k}.{gate}"
            yield Piece(f"{dataset}/W_{gate}", (n_filters, n_filters), f"{name}.weight")
            yield Piece(f"{dataset}/b_{gate}", (n_filters,), f"{name}.bias")
    if config.projects_characters:
        yield Piece("CNN_proj/W_proj", (n_filters, P), "char_cnn.projection.weight")
        yield Piece("CNN_proj/b_proj", (P,), "char_cnn.projection.bias")
    for d in range(2):
        for k in range(config.n_layers):
            cell, name, size = _cell(d, k), f"lstm.{k}", (2 * P, 4 * D)
            # Of the rows of W_0 those of x_t come first, then those of h_{t-1}.
            for kind, rows in (("weight_ih", slice(None, P)), ("weight_hh", slice(P, None))):
                yield Piece(f"{cell}/W_0", size, f"{name}.{kind}", GATES, d, rows)
            yield Piece(f"{cell}/B", (4 * D,), f"{name}.bias", GATES, d)
            if config.projects_cells:
                yield Piece(f"{cell}/W_P_0", (D, P), f"{name}.weight_hr", direction=d)


def dataset_shapes(config: BiLMConfig) -> dict[str, Shape]:
    """Names and shapes of the datasets of a biLM's encoder in the published layout."""
    return {piece.dataset: piece.shape for piece in pieces(config)}


def identity_shapes(config: BiLMConfig) -> dict[str, Shape]:
    """Names and shapes of projections that do nothing: the reference implementation needs them in a
    file where the sizes agree already, others ignore them."""
    P = config.projection_dim
    shapes: dict[str, Shape] = {}
    if not config.projects_characters:
        shapes |= {"CNN_proj/W_proj": (P, P), "CNN_proj/b_proj": (P,)}
    if not config.projects_cells:
        cells = (_cell(d, layer) for d in range(2) for layer in range(config.n_layers))
        shapes |= {f"{cell}/W_P_0": (P, P) for cell in cells}
    return shapes


def identity(shape: Shape) -> np.ndarray:
    """A weight or bias that does nothing."""
    return np.eye(*shape, dtype="f4") if len(shape) == 2 else np.zeros(shape, dtype="f4")


def dataset_names(config: BiLMConfig) -> set[str]:
    """The datasets of a biLM's encoder, and those that only one with more layers, filters or
    highways has."""
    others = {
        f"{_cell(0, config.n_layers)}/W_0",
        f"CNN/W_cnn_{len(config.filters)}",
        f"CNN_high_{config.n_highway}/W_carry",
    }
    return {*dataset_shapes(config), *identity_shapes(config), *others}


def check_datasets(config: BiLMConfig, datasets: Mapping[str, Any], source: str) -> None:
    """Compare names, shapes and types with a config; hardly any data is read.

    Args:
        config: the shape of the biLM.
        datasets: those of `dataset_names` that there are; arrays, or open HDF5 datasets.
        source: where they come from, for error messages.

    Raises:
        ValueError: a dataset is missing, has another shape or type than the config requires, or
            belongs to a part that the config does not have.
    """
    shapes = dataset_shapes(config)
    together = "Does the options.json belong to these weights?"
    for name, shape in shapes.items():
        if name not in datasets:
            raise ValueError(
                f"{source}: the dataset '{name}' of shape {shape} is missing. {together}"
            )
    # Part of a larger model would load silently and compute something else.
    ignored = identity_shapes(config)
    for name in sorted(set(datasets) - set(shapes)):
        if name not in ignored or not _is_identity(datasets[name], ignored[name], source):
            raise ValueError(
                f"{source}: the dataset '{name}' belongs to a part that options.json does not "
                f"describe. {together}"
            )
    with_padding = (N_CHARACTERS + 1, config.char_dim)
    if datasets["char_embed"].shape == with_padding:
        shapes["char_embed"] = with_padding
    for name, shape in shapes.items():
        with reading(f"the dataset '{name}' of", source):
            found, dtype = tuple(datasets[name].shape or ()), datasets[name].dtype  # None if empty
        if found != shape:
            raise ValueError(
                f"{source}: the dataset '{name}' has the shape {found}, expected {shape} by "
                f"options.json. {together}"
            )
        if dtype.kind != "f":
            raise ValueError(
                f"{source}: the dataset '{name}' is of the type {dtype}, expected floating point."
            )


def _is_identity(dataset: Any, shape: Shape, source: str) -> bool:
    is_similar = dataset.shape == shape and dataset.dtype.kind == "f"
    return is_similar and np.array_equal(read_dataset(dataset, source), identity(shape))


def read_dataset(dataset: Any, source: str, part: Any = ()) -> np.ndarray:
    """A float32 copy of a dataset, or of a part; values too large for it become infinite.

    Args:
        dataset: an array, or an open HDF5 dataset.
        source: where it comes from, for error messages.
        part: the index of the part.

    Raises:
        ValueError: the file is damaged.
    """
    with reading("the HDF5 file", source), np.errstate(over="ignore"):
        return np.asarray(dataset[part]).astype(np.float32)


def to_parameters(
    config: BiLMConfig, datasets: Mapping[str, Any], source: str = "published weights"
) -> dict[str, torch.Tensor]:
    """The parameters of a `BiLM`, read from the published datasets.

    Args:
        config: the shape of the biLM.
        datasets: by name, of any float type and byte order; arrays, or open HDF5 datasets, which
            are then read one at a time.
        source: where they come from, for error messages.

    Returns:
        float32 tensors under the names of ``BiLM(config).state_dict()``.

    Raises:
        ValueError: see `check_datasets`.
    """
    check_datasets(config, datasets, source)
    parameters: dict[str, np.ndarray] = {}
    for piece in pieces(config):
        array = piece.conversion[0](read_dataset(datasets[piece.dataset], source, piece.rows))
        if piece.direction is None:
            parameters[piece.parameter] = np.ascontiguousarray(array)
        else:
            if piece.parameter not in parameters:
                parameters[piece.parameter] = np.empty((2, *array.shape), dtype=np.float32)
            parameters[piece.parameter][piece.direction] = array
    return {name: torch.from_numpy(array) for name, array in parameters.items()}


def to_datasets(
    config: BiLMConfig, parameters: Mapping[str, torch.Tensor]
) -> Iterator[tuple[str, np.ndarray]]:
    """The published datasets, one after another, float32: the inverse of `to_parameters`.

    Args:
        config: the shape of the biLM.
        parameters: its ``state_dict``.
    """

    def convert(piece: Piece) -> np.ndarray:
        array = parameters[piece.parameter].detach().cpu().float().numpy()
        return piece.conversion[1](array if piece.direction is None else array[piece.direction])

    for name, group in groupby(pieces(config), key=lambda piece: piece.dataset):
        arrays = [convert(piece) for piece in group]
        yield name, np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
    yield from ((name, identity(shape)) for name, shape in identity_shapes(config).items())


def _cell(direction: int, layer: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
