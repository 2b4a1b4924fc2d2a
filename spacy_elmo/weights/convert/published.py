"""Reads and writes published weights, an ``options.json`` and an HDF5 file.

The options are a biLM's config under other names. The datasets are the variables of a TensorFlow
model, which multiplies inputs by weights and has its gates in the order i, j, f, o. Neither format
includes the 1 that is added to the forget gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...bilm.config import BiLMConfig
from ...bilm.model import BiLM
from ...util.files import members, naming_errors, read_json, write_json
from ...util.optional_imports import import_extra
from ..layout import read_words
from ..tensors import Tensors, check_shapes, check_tensors, empty_head

OPTIONS, MODEL = "options.json", "model.hdf5"
HDF5 = (".hdf5", ".h5")
SPECIALS = ("<S>", "</S>", "<UNK>")  # the first words of our vocabularies
MAX_RATIO = 1100  # deflate does not compress better
LSTM = ("dim", "projection_dim", "n_layers", "use_skip_connections", "cell_clip", "proj_clip")
CHAR_CNN = ("activation", "filters", "n_highway", "max_characters_per_token")
OURS = ("initial_state", "unicode_normalization", "lower_capitals")  # other tools ignore this block
CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell"
# The name of each dataset, and the tensors that are its rows once they are transposed.
Expected = Iterable[tuple[str, list[torch.Tensor]]]


def to_options(config: BiLMConfig) -> dict[str, Any]:
    """Write a config as a published ``options.json``.

    Raises:
        ValueError: the biLM has no char-CNN.
    """
    if config.token_encoder != "char_cnn":
        raise ValueError(
            f"The published format is for biLMs with a char-CNN; this one has token_encoder = "
            f"{config.token_encoder!r}, which no other implementation reads. Drop --to published."
        )
    return {
        "bidirectional": True,
        "lstm": {name: getattr(config, name) for name in LSTM},  # null too: bilm-tf needs the key
        "char_cnn": {
            **{name: getattr(config, name) for name in CHAR_CNN},
            "embedding": {"dim": config.char_dim},
            "filters": [list(pair) for pair in config.filters],
            "n_characters": 262,
        },
        "spacy_elmo": {name: getattr(config, name) for name in OURS},
    }


def from_options(options: Mapping[str, Any]) -> BiLMConfig:
    """Read a published ``options.json``, as it is for training or for inference.

    Raises:
        ValueError: the model is not a char-CNN biLM, or a setting is missing or wrong.
    """
    if options.get("bidirectional") is False or not options.get("char_cnn"):
        raise ValueError(
            "options.json: 'bidirectional' is false, or there is no 'char_cnn'. Only biLMs of both "
            "directions with a character CNN can be loaded, none that read word ids."
        )
    lstm, cnn, ours = (options.get(name) or {} for name in ("lstm", "char_cnn", "spacy_elmo"))
    if not all(isinstance(block, Mapping) for block in (lstm, cnn, ours)):
        raise ValueError("options.json: 'lstm', 'char_cnn' and 'spacy_elmo' must be objects.")
    known = {**lstm, **{name: value for name, value in cnn.items() if value is not None}, **ours}
    # The published models were trained with a state that is carried from sentence to sentence.
    given = {"activation": None, "use_skip_connections": False, "initial_state": "warm"}
    given |= {name: known[name] for name in (*LSTM, *CHAR_CNN, *OURS) if name in known}
    [embedding] = members({"embedding": cnn.get("embedding") or {}}, embedding=dict)
    return BiLMConfig.from_dict({**given, "char_dim": embedding.get("dim")})


def datasets_of(model: BiLM) -> Expected:
    """The datasets of a biLM."""
    cnn: Any = model.char_cnn
    yield "char_embed", [cnn.embedding.weight.T]
    for i, convolution in enumerate(cnn.convolutions):
        yield f"CNN/W_cnn_{i}", [convolution.weight.unsqueeze(-1)]
        yield f"CNN/b_cnn_{i}", [convolution.bias]
    for k, highway in enumerate(cnn.highways):
        for gate in ("carry", "transform"):
            yield f"CNN_high_{k}/W_{gate}", [getattr(highway, gate).weight]
            yield f"CNN_high_{k}/b_{gate}", [getattr(highway, gate).bias]
    if cnn.projection is not None:
        yield "CNN_proj/W_proj", [cnn.projection.weight]
        yield "CNN_proj/b_proj", [cnn.projection.bias]
    for d in range(2):
        for k, lstm in enumerate(model.lstm):
            cell = CELL.format(d, k)
            yield f"{cell}/W_0", [lstm.weight_ih[d], lstm.weight_hh[d]]
            yield f"{cell}/B", [lstm.bias[d]]
            if lstm.weight_hr is not None:
                yield f"{cell}/W_P_0", [lstm.weight_hr[d]]


def softmax_of(head: Tensors) -> Expected:
    """The datasets of a head, none if it is empty."""
    return [("softmax/W", [head["weight"].T]), ("softmax/b", [head["bias"]])] if head else []


def identities(config: BiLMConfig) -> dict[str, np.ndarray]:
    """Projections that do nothing, where sizes agree without one. The reference implementation
    needs them in a file; others ignore them."""
    P, cells = config.projection_dim, product(range(2), range(config.n_layers))
    cnn = {"CNN_proj/W_proj": np.eye(P, dtype="f4"), "CNN_proj/b_proj": np.zeros(P, "f4")}
    lstm = {f"{CELL.format(d, k)}/W_P_0": np.eye(P, dtype="f4") for d, k in cells}
    return ({} if config.projects_characters else cnn) | ({} if config.projects_cells else lstm)


def as_dataset(parts: list[torch.Tensor]) -> torch.Tensor:
    """Make a dataset from tensors: transposed, they are its rows."""
    return torch.cat([part.permute(*reversed(range(part.ndim))) for part in parts])


def swap_gates(name: str, array: np.ndarray) -> np.ndarray:
    """Change the gates of a dataset, if any, from i, j, f, o to i, f, g (= j), o, or back."""
    if not name.endswith(("/W_0", "/B")):
        return array
    i, j, f, o = np.split(array, 4, axis=-1)
    return np.concatenate([i, f, j, o], axis=-1)


@contextmanager
def open_datasets(file: Path) -> Iterator[dict[str, Any]]:
    """Open an HDF5 file, and yield its datasets by name.

    Links, data in other files, and datasets that claim more values than their bytes can hold are
    left out.

    Raises:
        ValueError: the file is damaged, which may show only when a dataset is read.
    """
    h5py, datasets = import_extra("h5py", "hdf5", "HDF5 needs h5py", str(file)), {}

    def add(name: str, item: Any) -> None:
        is_own = isinstance(item, h5py.Dataset) and not (item.external or item.is_virtual)
        if is_own and item.shape is not None:
            n_bytes = item.size * item.id.get_type().get_size()
            if n_bytes <= MAX_RATIO * item.id.get_storage_size():
                datasets[name] = item

    with naming_errors("the HDF5 file", file), h5py.File(file, "r") as opened:
        opened.visititems(add)
        yield datasets


def check_datasets(
    datasets: Mapping[str, Any], parts: Expected, config: BiLMConfig, source: str, files: str
) -> None:
    """Check the names and shapes of datasets; no values are read, except those of `identities`.

    Args:
        datasets: the datasets in a file.
        parts: the datasets that are expected.
        config: the config of the biLM.
        source: the file, for errors.
        files: the files that say what is expected, for errors.

    Raises:
        ValueError: a dataset is missing or has another shape; or one belongs to a larger model, a
            part of which would load and compute something else.
    """
    expected = {name: as_dataset(tensors) for name, tensors in parts}
    known = {}
    for name in expected.keys() & datasets.keys():
        dtype = torch.float32 if datasets[name].dtype.kind == "f" else torch.int32
        known[name] = torch.empty(datasets[name].shape, dtype=dtype, device="meta")
    check_shapes(expected, source, known, files)
    nothing = identities(config)  # not before: it takes as much memory as the config claims
    for name in sorted(datasets.keys() - known.keys()):
        dataset, array = datasets[name], nothing.get(name, np.empty(0))
        is_layer = name.startswith(("CNN", "RNN"))
        if is_layer and not (dataset.shape == array.shape and np.array_equal(dataset, array)):
            raise ValueError(f"'{name}' belongs to a part that is not described by {files}.")


def read_datasets(datasets: Mapping[str, Any], expected: Expected) -> None:
    """Read datasets into float32 tensors, one at a time. Values that are too large become inf."""
    with torch.no_grad(), np.errstate(over="ignore"):
        for name, parts in expected:
            array = swap_gates(name, np.array(datasets[name], dtype=np.float32))
            for part, rows in zip(parts, np.split(array, len(parts)), strict=True):
                part.copy_(torch.from_numpy(rows.T))


def find_hdf5(folder: Path) -> Path:
    """Find the HDF5 file beside an ``options.json``; raise a ValueError if it is not clear."""
    files = sorted(file for file in folder.iterdir() if file.suffix in HDF5 and file.is_file())
    files = [file for file in files if file.name == MODEL] or files
    if len(files) != 1:
        raise ValueError(
            f"'{folder}' needs exactly one *.hdf5 file beside {OPTIONS}, found "
            f"{[file.name for file in files]}. Give the two files that belong together."
        )
    return files[0]


def read_published(
    options: Path, hdf5: Path, vocab: Path | None
) -> tuple[BiLM, list[str] | None, dict[str, torch.Tensor]]:
    """Read a published biLM in float32, in evaluation mode, with its head.

    Args:
        options, hdf5: the two files.
        vocab: a file with the V words of the head in its order; None if they are unknown.

    Returns:
        The biLM; the words, the special ones first, or None without a head; the head, ``weight``
        ``(V, P)`` and ``bias`` ``(V,)``, empty without words.

    Raises:
        ValueError: something is missing or damaged, or does not fit the options or the words.
    """
    data, words = read_json(options), [] if vocab is None else read_words(vocab)
    with naming_errors("the biLM's config", options):
        config = from_options(data)
    with torch.device("meta"):
        model = BiLM(config)
    files, head = f"'{options}'", {}
    with open_datasets(hdf5) as datasets:
        has_head = {"softmax/W", "softmax/b"} <= datasets.keys()
        if has_head and words:
            head = empty_head(len(words), config)
            files += f" and '{vocab}', which has {len(words):,} words"
        parts = [*datasets_of(model), *softmax_of(head)]
        check_datasets(datasets, parts, config, hdf5.name, files)
        model.to_empty(device="cpu")
        head = {name: torch.empty_like(tensor, device="cpu") for name, tensor in head.items()}
        read_datasets(datasets, [*datasets_of(model), *softmax_of(head)])
    for tensors in (model.state_dict(), head):
        check_tensors(tensors, str(hdf5), tensors)
    if not head:
        return model.eval(), [] if has_head else None, {}
    if not set(SPECIALS) <= set(words) or len(set(words)) < len(words):
        raise ValueError(f"'{vocab}' must have {', '.join(SPECIALS)}, and each word once.")
    order = sorted(range(len(words)), key=lambda i: (*SPECIALS, words[i]).index(words[i]))
    return model.eval(), [words[i] for i in order], {n: t[order] for n, t in head.items()}


def write_published(model: BiLM, path: Path, head: Tensors | None = None) -> None:
    """Write ``options.json`` and ``model.hdf5``, without the warm state, which the format lacks.

    Args:
        model: a biLM.
        path: a directory that exists.
        head: ``weight`` ``(V, P)`` and ``bias`` ``(V,)``.
    """
    h5py = import_extra("h5py", "hdf5", "HDF5 needs h5py", str(path / MODEL))
    options, in_memory = to_options(model.config), BytesIO()  # HDF5 crashes where the disk is full
    with h5py.File(in_memory, "w") as file:
        for name, parts in [*datasets_of(model), *softmax_of(head or {})]:
            file[name] = swap_gates(name, as_dataset(parts).detach().cpu().float().numpy())
        for name, array in identities(model.config).items():
            file[name] = array
    if head:
        options["n_tokens_vocab"] = len(head["bias"])
    write_json(path / OPTIONS, options)
    (path / MODEL).write_bytes(in_memory.getbuffer())
