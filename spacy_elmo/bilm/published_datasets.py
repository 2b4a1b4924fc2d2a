"""The datasets of the published HDF5 layout, and the parameters of a `BiLM` that they hold.

They are a TensorFlow model's variables: inputs times weights, gates in the order i, j, f, o. The
+1 of the forget gate is in neither of the two. One parameter is made at a time, so that nothing
is in memory twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from .characters import N_CHARACTERS
from .config import BiLMConfig

Shape = tuple[int, ...]


def dataset_shapes(config: BiLMConfig) -> dict[str, Shape]:
    """Names and shapes of the datasets that hold a biLM's encoder in the published layout."""
    n_filters, P, D = config.n_filters, config.projection_dim, config.dim
    shapes: dict[str, Shape] = {"char_embed": (N_CHARACTERS, config.char_dim)}
    for i, (width, number) in enumerate(config.filters):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, config.char_dim, number)
        shapes[f"CNN/b_cnn_{i}"] = (number,)
    for k in range(config.n_highway):
        for gate in ("carry", "transform"):
            shapes[f"CNN_high_{k}/W_{gate}"] = (n_filters, n_filters)
            shapes[f"CNN_high_{k}/b_{gate}"] = (n_filters,)
    if config.projects_characters:
        shapes |= {"CNN_proj/W_proj": (n_filters, P), "CNN_proj/b_proj": (P,)}
    for direction in range(2):
        for layer in range(config.n_layers):
            cell = _cell(direction, layer)
            shapes[f"{cell}/W_0"] = (2 * P, 4 * D)
            shapes[f"{cell}/B"] = (4 * D,)
            if config.projects_cells:
                shapes[f"{cell}/W_P_0"] = (D, P)
    return shapes


def identities(config: BiLMConfig) -> dict[str, np.ndarray]:
    """Projections that do nothing: the reference implementation wants them in a file where the
    sizes agree already, others pass over them."""
    P = config.projection_dim
    eye = np.eye(P, dtype=np.float32)
    arrays: dict[str, np.ndarray] = {}
    if not config.projects_characters:
        arrays |= {"CNN_proj/W_proj": eye, "CNN_proj/b_proj": np.zeros(P, dtype=np.float32)}
    if not config.projects_cells:
        for direction in range(2):
            for layer in range(config.n_layers):
                arrays[f"{_cell(direction, layer)}/W_P_0"] = eye
    return arrays


def check_datasets(config: BiLMConfig, datasets: Mapping[str, Any], source: str) -> None:
    """Compare names, shapes and types with a config, reading next to nothing.

    Args:
        config: the shape of the biLM.
        datasets: by name; arrays, or open HDF5 datasets. A softmax among them is not looked at.
        source: where they come from, for error messages.

    Raises:
        ValueError: a dataset is missing, has another shape than the config says, holds no
            floating point numbers, or belongs to a part that the config does not have.
    """
    shapes = dataset_shapes(config)
    if "char_embed" not in datasets and "embedding" in datasets:
        raise ValueError(
            f"{source}: there is a dataset 'embedding' and no 'char_embed', so this model reads "
            f"word ids, not characters. Only biLMs with a character CNN can be loaded."
        )
    missing = [name for name in shapes if name not in datasets]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise ValueError(
            f"{source}: the dataset '{missing[0]}' of shape {shapes[missing[0]]} is missing{more}. "
            f"Does the options.json belong to these weights?"
        )
    # Part of a larger model would load without a word and compute something else.
    nothing = identities(config)
    for name in datasets:
        if not name.startswith(("CNN", "RNN")) or name in shapes:
            continue
        if name not in nothing or not _is_equal(datasets[name], nothing[name]):
            raise ValueError(
                f"{source}: the dataset '{name}' belongs to a part that options.json does not "
                f"describe. Does the options.json belong to these weights?"
            )
    with_no_token = (N_CHARACTERS + 1, config.char_dim)  # a row for the id 0, never read
    if datasets["char_embed"].shape == with_no_token:
        shapes["char_embed"] = with_no_token
    for name, shape in shapes.items():
        check_dataset(name, datasets[name], shape, source)


def _is_equal(dataset: Any, array: np.ndarray) -> bool:
    alike = dataset.shape == array.shape and dataset.dtype.kind == array.dtype.kind
    return alike and np.array_equal(dataset[()], array)


def check_dataset(
    name: str, dataset: Any, shape: Shape, source: str, fact: str = "options.json"
) -> None:
    """Check the shape and the type of one.

    Args:
        name: what it is called.
        dataset: an array, or an open HDF5 dataset.
        shape: what it should have.
        source: where it comes from, for error messages.
        fact: what says that it should have this shape.

    Raises:
        ValueError: it has another shape, or holds no floating point numbers.
    """
    found = tuple(dataset.shape or ())  # None if it holds nothing at all
    if found != shape:
        raise ValueError(
            f"{source}: the dataset '{name}' has the shape {found}, but by {fact} it should have "
            f"{shape}. Do the files belong together?"
        )
    try:
        dtype = dataset.dtype
    except (TypeError, ValueError) as error:  # NumPy has none like it
        raise ValueError(f"{source}: the dataset '{name}' cannot be read ({error}).") from error
    if dtype.kind != "f":
        raise ValueError(
            f"{source}: the dataset '{name}' holds {dtype}, expected floating point numbers."
        )


def read_dataset(dataset: Any, part: Any = ()) -> np.ndarray:
    """A float32 copy of one, or of a part; what is too large for that becomes infinite."""
    with np.errstate(over="ignore"):
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
        ValueError: see `check_datasets`; or a number is not finite in float32.
    """
    check_datasets(config, datasets, source)
    parameters = {}
    for name, names, array in _read(config, datasets):
        if not np.isfinite(array).all():
            raise ValueError(
                f"{source}: the dataset '{names}' holds values that are not finite in float32."
            )
        parameters[name] = torch.from_numpy(array)
    return parameters


def _read(config: BiLMConfig, datasets: Mapping[str, Any]) -> Iterator[tuple[str, str, np.ndarray]]:
    """Our name, theirs, and the contiguous array of each parameter."""
    P, D = config.projection_dim, config.dim

    def read(name: str, part: Any = ()) -> np.ndarray:
        return read_dataset(datasets[name], part)

    def copy(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array)

    yield "char_cnn.embedding.weight", "char_embed", copy(read("char_embed")[-N_CHARACTERS:])
    for i in range(len(config.filters)):
        name = f"CNN/W_cnn_{i}"  # (1, width, char_dim, number)
        yield f"char_cnn.convolutions.{i}.weight", name, copy(read(name)[0].transpose(2, 1, 0))
        name = f"CNN/b_cnn_{i}"
        yield f"char_cnn.convolutions.{i}.bias", name, read(name)
    for k in range(config.n_highway):
        for gate in ("carry", "transform"):
            name = f"CNN_high_{k}/W_{gate}"
            yield f"char_cnn.highways.{k}.{gate}.weight", name, copy(read(name).T)
            name = f"CNN_high_{k}/b_{gate}"
            yield f"char_cnn.highways.{k}.{gate}.bias", name, read(name)
    if config.projects_characters:
        yield "char_cnn.projection.weight", "CNN_proj/W_proj", copy(read("CNN_proj/W_proj").T)
        yield "char_cnn.projection.bias", "CNN_proj/b_proj", read("CNN_proj/b_proj")
    for layer in range(config.n_layers):
        cells = [_cell(direction, layer) for direction in range(2)]
        theirs = f"{cells[0]}/W_0 or …/RNN_1/…"
        # Of the rows of W_0 those of x_t come first, then those of h_{t-1}.
        for kind, rows in (("weight_ih", slice(None, P)), ("weight_hh", slice(P, None))):
            weight = np.empty((2, 4 * D, P), dtype=np.float32)
            for ours, cell in zip(weight, cells, strict=True):
                ours[:] = swap_gates(read(f"{cell}/W_0", rows)).T
            yield f"lstm.{layer}.{kind}", theirs, weight
        bias = np.stack([swap_gates(read(f"{cell}/B")) for cell in cells])
        yield f"lstm.{layer}.bias", f"{cells[0]}/B or …/RNN_1/…", bias
        if config.projects_cells:
            weight = np.stack([read(f"{cell}/W_P_0").T for cell in cells])
            yield f"lstm.{layer}.weight_hr", f"{cells[0]}/W_P_0 or …/RNN_1/…", copy(weight)


def to_datasets(
    config: BiLMConfig, parameters: Mapping[str, torch.Tensor]
) -> Iterator[tuple[str, np.ndarray]]:
    """The published datasets, one after another, float32: the inverse of `to_parameters`.

    Args:
        config: the shape of the biLM.
        parameters: its ``state_dict``.
    """

    def array(name: str) -> np.ndarray:
        return parameters[name].detach().cpu().float().numpy()

    yield "char_embed", array("char_cnn.embedding.weight")
    for i in range(len(config.filters)):
        kernel = array(f"char_cnn.convolutions.{i}.weight")  # (number, char_dim, width)
        yield f"CNN/W_cnn_{i}", kernel.transpose(2, 1, 0)[None]
        yield f"CNN/b_cnn_{i}", array(f"char_cnn.convolutions.{i}.bias")
    for k in range(config.n_highway):
        for gate in ("carry", "transform"):
            yield f"CNN_high_{k}/W_{gate}", array(f"char_cnn.highways.{k}.{gate}.weight").T
            yield f"CNN_high_{k}/b_{gate}", array(f"char_cnn.highways.{k}.{gate}.bias")
    if config.projects_characters:
        yield "CNN_proj/W_proj", array("char_cnn.projection.weight").T
        yield "CNN_proj/b_proj", array("char_cnn.projection.bias")
    for direction in range(2):
        for layer in range(config.n_layers):
            cell = _cell(direction, layer)
            from_x, from_h = (
                swap_gates(array(f"lstm.{layer}.{kind}")[direction].T)
                for kind in ("weight_ih", "weight_hh")
            )
            yield f"{cell}/W_0", np.concatenate([from_x, from_h])
            yield f"{cell}/B", swap_gates(array(f"lstm.{layer}.bias")[direction])
            if config.projects_cells:
                yield f"{cell}/W_P_0", array(f"lstm.{layer}.weight_hr")[direction].T
    yield from identities(config).items()


def swap_gates(gates: np.ndarray) -> np.ndarray:
    """``(…, 4D)`` with gates i, j, f, o to i, f, g (= j), o; and back."""
    i, j, f, o = np.split(gates, 4, axis=-1)
    return np.concatenate([i, f, j, o], axis=-1)


def _cell(direction: int, layer: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
