"""What several of the tests in this folder need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.characters import BOS, EOS
from spacy_elmo.bilm.model import BiLM, State
from spacy_elmo.bilm.sentence_batches import id_tensor


def make_options(**changes: Any) -> dict[str, Any]:
    """A tiny model's ``options.json``; ``changes`` go to the block that knows them."""
    options: dict[str, Any] = {
        "lstm": {"dim": 9, "projection_dim": 5, "n_layers": 2, "use_skip_connections": True},
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 4},
            "filters": [[1, 2], [2, 3], [4, 6]],
            "n_highway": 1,
            "n_characters": 262,
            "max_characters_per_token": 50,
        },
        "spacy_elmo": {"initial_state": "zero"},
    }
    for name, value in changes.items():
        in_cnn = name in options["char_cnn"]
        options["char_cnn" if in_cnn else "lstm"][name] = value
    return options


def run_bilm(
    model: BiLM, sentences: Sequence[Sequence[str]], state: State | None = None
) -> tuple[list[np.ndarray], State]:
    """Layers ``(L + 1, n_words, 2P)`` of each sentence, and the state of each at its end.

    The sentences start from zeros if no state is given, whatever the model would do itself.
    Goes through the arguments of `BiLM.forward`, the boundaries added and dropped here.
    """
    bounded = [[BOS, *words, EOS] for words in sentences]
    rows: dict[str, int] = {}
    tokens = [rows.setdefault(word, len(rows)) for words in bounded for word in words]
    lengths = [len(words) for words in bounded]
    ids = id_tensor(*model.char_cnn.to_ids(list(rows)))
    if state is None:
        state = zero_state(model, len(sentences))
    with torch.no_grad():
        layers, state = model(model.char_cnn(ids), torch.tensor(tokens), lengths, state)
    return [part[:, 1:-1].numpy() for part in layers.split(lengths, dim=1)], state


def zero_state(model: BiLM, n: int) -> State:
    """A state of zeros for n sentences."""
    h, c = model.initial_state("zero")
    return h.repeat(1, 1, n, 1), c.repeat(1, 1, n, 1)


def run_carried(
    model: BiLM, batches: Sequence[Sequence[Sequence[str]]]
) -> Iterator[list[np.ndarray]]:
    """Layers of each batch, row k starting where row k of the batch before ended.

    A smaller batch leaves the state of the rows it lacks as it was; new rows start from zero.
    """
    most = max(map(len, batches))
    h, c = zero_state(model, most)
    for batch in batches:
        n = len(batch)
        layers, (h[:, :, :n], c[:, :, :n]) = run_bilm(model, batch, (h[:, :, :n], c[:, :, :n]))
        yield layers


def write(folder: Path, options: Any, weights: Mapping[str, Any]) -> Path:
    """A published model's two files; returns the folder."""
    h5py = pytest.importorskip("h5py")
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, values in weights.items():
            file[name] = values
    return folder


def read_datasets(path: Path) -> dict[str, np.ndarray]:
    """All datasets of an HDF5 file."""
    h5py = pytest.importorskip("h5py")
    found: dict[str, np.ndarray] = {}

    def read(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(read)
    return found


def same_weights(one: BiLM, other: BiLM) -> bool:
    """Whether the parameters are the same, to the last bit."""
    a, b = (
        {name: p.detach().view(torch.int32) for name, p in model.named_parameters()}
        for model in (one, other)
    )
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def max_difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest absolute difference; shapes have to agree."""
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max(initial=0.0))
