"""Published weights: a directory with an ``options.json`` and one HDF5 file.

The file holds a TensorFlow model's variables (inputs times weights, gates in the order
i, j, f, o); `to_state_dict` turns them into this package's parameters. The +1 of the forget
gate is in neither of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from .characters import N_CHARACTERS
from .config import BiLMConfig
from .model import BiLM


def dataset_shapes(config: BiLMConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the datasets that hold a biLM's encoder in the published layout."""
    n_filters, P, D = config.n_filters, config.projection_dim, config.dim
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (N_CHARACTERS, config.char_dim)}
    for i, (width, number) in enumerate(config.filters):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, config.char_dim, number)
        shapes[f"CNN/b_cnn_{i}"] = (number,)
    for k in range(config.n_highway):
        for gate in ("carry", "transform"):
            shapes[f"CNN_high_{k}/W_{gate}"] = (n_filters, n_filters)
            shapes[f"CNN_high_{k}/b_{gate}"] = (n_filters,)
    if config.projects_characters:
        shapes["CNN_proj/W_proj"] = (n_filters, P)
        shapes["CNN_proj/b_proj"] = (P,)
    for direction in range(2):
        for layer in range(config.n_layers):
            cell = _cell(direction, layer)
            shapes[f"{cell}/W_0"] = (2 * P, 4 * D)
            shapes[f"{cell}/B"] = (4 * D,)
            if config.projects_cells:
                shapes[f"{cell}/W_P_0"] = (D, P)
    return shapes


def to_state_dict(
    config: BiLMConfig, tensors: Mapping[str, np.ndarray], source: str = "published weights"
) -> dict[str, torch.Tensor]:
    """Map the published datasets to the parameters of a `BiLM`.

    Args:
        config: the shape of the biLM.
        tensors: dataset names to arrays of any float type and byte order (or to open HDF5
            datasets, which are then read one at a time). A softmax among them is not read.
        source: where they come from, for error messages.

    Returns:
        float32 parameters under the names of ``BiLM(config).state_dict()``.

    Raises:
        ValueError: a dataset is missing, has another shape than the config says, holds anything
            but finite numbers, or belongs to a part that the config does not have.
    """
    shapes = dataset_shapes(config)
    missing = [name for name in shapes if name not in tensors]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise ValueError(
            f"{source}: the dataset '{missing[0]}' of shape {shapes[missing[0]]} is missing{more}. "
            f"Does the options.json belong to these weights?"
        )
    # Part of a larger model would load without a word and compute something else.
    extra = [name for name in tensors if name.startswith(("CNN", "RNN")) and name not in shapes]
    if extra:
        raise ValueError(
            f"{source}: the dataset '{extra[0]}' belongs to a part that options.json does not "
            f"describe. Does the options.json belong to these weights?"
        )
    arrays: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        found = tensors[name]
        if tuple(found.shape) != shape:
            raise ValueError(
                f"{source}: the dataset '{name}' has the shape {tuple(found.shape)}, but "
                f"options.json calls for {shape}."
            )
        if found.dtype.kind != "f":
            raise ValueError(
                f"{source}: the dataset '{name}' holds {found.dtype}, expected floating point "
                f"numbers."
            )
        with np.errstate(over="ignore"):  # of float64; reported as not finite
            arrays[name] = np.array(found, dtype=np.float32)
        if not np.isfinite(arrays[name]).all():
            raise ValueError(
                f"{source}: the dataset '{name}' holds values that are not finite in float32."
            )
    return {
        name: torch.from_numpy(np.ascontiguousarray(array))
        for name, array in _rename(config, arrays).items()
    }


def read_published(path: str | Path) -> BiLM:
    """Read a directory with published weights: ``options.json`` and exactly one ``*.hdf5``.

    Returns:
        A float32 biLM on the CPU, in training mode as any new module.

    Raises:
        ValueError: a file is missing, there are several ``*.hdf5``, one cannot be read, the two
            do not fit each other, or h5py is not installed.
    """
    folder = Path(path)
    config = read_options(folder / "options.json")
    files = sorted(folder.glob("*.hdf5"))
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise ValueError(f"{folder}: expected exactly one *.hdf5 file, found {found}.")
    try:
        import h5py  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ValueError(
            f"{files[0]}: reading HDF5 needs h5py. Install it with: pip install 'spacy-elmo[hdf5]'"
        ) from None
    try:
        with h5py.File(files[0], "r") as file:
            datasets: dict[str, np.ndarray] = {}

            def collect(name: str, item: object) -> None:
                if isinstance(item, h5py.Dataset):
                    datasets[name] = item

            file.visititems(collect)
            state = to_state_dict(config, datasets, source=str(files[0]))
    except (OSError, RuntimeError, KeyError) as error:  # what h5py raises for broken files
        raise ValueError(
            f"{files[0]}: cannot be read as HDF5, it may be incomplete or damaged ({error})."
        ) from error
    with torch.device("meta"):  # no random weights that would be overwritten at once
        bilm = BiLM(config)
    bilm.load_state_dict(state, assign=True)
    return bilm


def _cell(direction: int, layer: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def _rename(config: BiLMConfig, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Our names, with axes and gates in our order."""
    P, D = config.projection_dim, config.dim
    ours = {"char_cnn.embedding.weight": arrays["char_embed"]}
    for i in range(len(config.filters)):
        kernel = arrays[f"CNN/W_cnn_{i}"][0]  # (width, char_dim, number)
        ours[f"char_cnn.convolutions.{i}.weight"] = kernel.transpose(2, 1, 0)
        ours[f"char_cnn.convolutions.{i}.bias"] = arrays[f"CNN/b_cnn_{i}"]
    for k in range(config.n_highway):
        for gate in ("carry", "transform"):
            ours[f"char_cnn.highways.{k}.{gate}.weight"] = arrays[f"CNN_high_{k}/W_{gate}"].T
            ours[f"char_cnn.highways.{k}.{gate}.bias"] = arrays[f"CNN_high_{k}/b_{gate}"]
    if config.projects_characters:
        ours["char_cnn.projection.weight"] = arrays["CNN_proj/W_proj"].T
        ours["char_cnn.projection.bias"] = arrays["CNN_proj/b_proj"]
    for layer in range(config.n_layers):
        cells = [_cell(direction, layer) for direction in range(2)]
        weight = _reorder(np.stack([arrays[f"{cell}/W_0"].T for cell in cells]), D)
        # Of the rows in the file those of x_t come first, then those of h_{t-1}.
        ours[f"lstm.{layer}.weight_ih"] = weight[:, :, :P]
        ours[f"lstm.{layer}.weight_hh"] = weight[:, :, P:]
        ours[f"lstm.{layer}.bias"] = _reorder(np.stack([arrays[f"{cell}/B"] for cell in cells]), D)
        if config.projects_cells:
            ours[f"lstm.{layer}.weight_hr"] = np.stack(
                [arrays[f"{cell}/W_P_0"].T for cell in cells]
            )
    return ours


def _reorder(gates: np.ndarray, D: int) -> np.ndarray:
    """``(2, 4D, …)`` with gates i, j, f, o to i, f, g (= j), o."""
    i, j, f, o = np.split(gates, [D, 2 * D, 3 * D], axis=1)
    return np.concatenate([i, f, j, o], axis=1)


def read_options(path: Path) -> BiLMConfig:
    """The shape of the biLM that an ``options.json`` describes.

    Raises:
        ValueError: the file cannot be read, or describes no biLM of ours; the message names it.
    """
    try:
        options = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise ValueError(f"{path}: is not valid JSON ({error}).") from None
    try:
        return BiLMConfig.from_options(options)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: does not describe a biLM ({error})") from None
