"""Published weights, an ``options.json`` and an HDF5 file: in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path

import torch

from ...bilm.config import BiLMConfig
from ...bilm.model import BiLM
from ...util.files import read_json, reading, write_json
from ..native import build
from .datasets import check_datasets, dataset_names, read_dataset, to_datasets, to_parameters
from .hdf5 import import_h5py, open_datasets
from .options import from_options, to_options

OPTIONS, MODEL = "options.json", "model.hdf5"
HDF5 = (".hdf5", ".h5")
SOFTMAX = {"weight": "softmax/W", "bias": "softmax/b"}
SPECIALS = ("<S>", "</S>", "<UNK>")  # are the first words of our vocabularies


def find_hdf5(folder: Path) -> Path:
    """The HDF5 file beside an ``options.json``; a ValueError unless it is clear which one it is."""
    if (folder / MODEL).is_file():
        return folder / MODEL
    found = sorted(file for file in folder.iterdir() if file.suffix in HDF5 and file.is_file())
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise ValueError(
            f"'{folder}' needs exactly one *.hdf5 file beside {OPTIONS}, found {names}. Give the "
            f"two files that belong together."
        )
    return found[0]


def read_config(options: Path) -> BiLMConfig:
    """The shape of a published biLM; a ValueError if it is none that can be read."""
    data = read_json(options)
    with reading("the biLM's config", options):
        return from_options(data)


def read_published(options: Path, hdf5: Path) -> BiLM:
    """A published biLM, in float32, in evaluation mode.

    Raises:
        ValueError: something is missing, damaged, or does not fit the options.
    """
    config = read_config(options)
    with open_datasets(hdf5, dataset_names(config)) as datasets:
        check_datasets(config, datasets, str(hdf5))
        parameters = to_parameters(config, datasets, str(hdf5))
    return build(config, parameters, str(hdf5))


def has_softmax(hdf5: Path) -> bool:
    """Tell whether a language model's head is stored, which may be without its words."""
    with open_datasets(hdf5, SOFTMAX.values()) as datasets:
        return len(datasets) == len(SOFTMAX)


def read_softmax(
    hdf5: Path, words: Sequence[str], projection_dim: int, source: str
) -> tuple[list[str], dict[str, torch.Tensor]]:
    """The words of a head and its tensors, the special words first, wherever they were.

    Args:
        hdf5: a file that has them.
        words: the V words, in their order there.
        projection_dim: size P of the biLM.
        source: of the words, for errors.

    Returns:
        The words; ``weight`` ``(V, P)`` and ``bias`` ``(V,)``.

    Raises:
        ValueError: the head does not fit the words or the biLM.
    """
    shapes = {"weight": (len(words), projection_dim), "bias": (len(words),)}
    with open_datasets(hdf5, SOFTMAX.values()) as datasets:
        for name, dataset in SOFTMAX.items():
            found = datasets[dataset].shape
            if found != shapes[name] or datasets[dataset].dtype.kind != "f":
                raise ValueError(
                    f"{hdf5}: the dataset '{dataset}' has the shape {found}, expected numbers of "
                    f"the shape {shapes[name]} for the {len(words):,} words in '{source}'."
                )
        arrays = {n: read_dataset(datasets[dataset], str(hdf5)) for n, dataset in SOFTMAX.items()}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if not all(tensor.isfinite().all() for tensor in tensors.values()):
        raise ValueError(f"{hdf5}: the head has values that are not finite.")
    if not set(SPECIALS) <= set(words) or len(set(words)) < len(words):
        raise ValueError(f"'{source}' must have {', '.join(SPECIALS)}, and each word once.")
    special = [words.index(word) for word in SPECIALS]
    order = special + [i for i in range(len(words)) if i not in special]
    return [words[i] for i in order], {name: tensor[order] for name, tensor in tensors.items()}


def write_published(
    model: BiLM, path: Path, head: Mapping[str, torch.Tensor] | None = None
) -> None:
    """Write ``options.json`` and ``model.hdf5`` into a directory that exists.

    The published layout has no warm state: it is left out.

    Args:
        model: a biLM.
        path: where to.
        head: of the language model, ``weight`` ``(V, P)`` and ``bias`` ``(V,)``.
    """
    h5py = import_h5py(str(path / MODEL))
    options = to_options(model.config)
    arrays = to_datasets(model.config, model.state_dict())
    if head is not None:
        softmax = ((dataset, head[name].cpu().float().numpy()) for name, dataset in SOFTMAX.items())
        arrays = chain(arrays, softmax)
        options["n_tokens_vocab"] = len(head["bias"])
    write_json(path / OPTIONS, options)
    in_memory = BytesIO()  # HDF5 crashes where the disk is full
    with h5py.File(in_memory, "w") as file:
        for name, array in arrays:
            file[name] = array
    (path / MODEL).write_bytes(in_memory.getbuffer())
