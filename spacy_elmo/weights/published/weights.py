"""Published weights: an ``options.json`` and an HDF5 file, in a directory or a zip; in and out."""

from __future__ import annotations

import tempfile
import weakref
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch
from torch import nn

from ...bilm.config import BiLMConfig
from ...bilm.model import BiLM
from ...util.files import read_json, reading, write_json
from ..layout import HDF5, MODEL, OPTIONS, VOCAB, Weights
from ..native import build
from ..zips import unpack
from .datasets import check_datasets, dataset_names, read_dataset, to_datasets, to_parameters
from .hdf5 import import_h5py, open_datasets
from .options import from_options, to_options

if TYPE_CHECKING:
    from importlib.abc import Traversable

SOFTMAX = {"weight": "softmax/W", "bias": "softmax/b"}


@dataclass(eq=False)
class PublishedWeights(Weights):
    """The files of a published model; `in_folder` finds them.

    Attributes:
        options: ``options.json``.
        hdf5: the tensors.
        vocab: words of the softmax, one per line, if there is a file of them.
        folder: where to look for a card.
        where: path or name, for messages.
    """

    layout = "published"
    options: Traversable
    hdf5: Traversable
    vocab: Traversable | None = None
    folder: Traversable | None = None
    where: str = ""

    def __post_init__(self) -> None:
        self.where = self.where or str(self.hdf5)

    @classmethod
    def in_folder(cls, folder: Traversable, where: str) -> PublishedWeights:
        """The weights in a directory, or in one inside a zip.

        Raises:
            ValueError: there is no HDF5 file, or there are several and none is `MODEL`.
        """
        files = {file.name: file for file in folder.iterdir() if file.is_file()}
        found = [MODEL] if MODEL in files else sorted(n for n in files if n.endswith(HDF5))
        if len(found) != 1:
            raise ValueError(
                f"{where}: expected exactly one *.hdf5 file beside {OPTIONS}, found "
                f"{', '.join(found) or 'none'}."
            )
        vocab = files.get(VOCAB) or files.get(f"{VOCAB}.gz")
        return cls(folder.joinpath(OPTIONS), files[found[0]], vocab, folder, where)

    def config(self) -> BiLMConfig:
        options = read_json(self.options)
        with reading("the biLM's config", self.options):
            return from_options(options)

    def load(self) -> BiLM:
        config = self.config()
        with self._datasets(dataset_names(config)) as datasets:
            parameters = to_parameters(config, datasets, source=str(self.hdf5))
        return build(config, parameters, str(self.hdf5))

    def check(self) -> None:
        config = self.config()
        with self._datasets(dataset_names(config)) as datasets:
            check_datasets(config, datasets, str(self.hdf5))

    def files(self) -> list[Path]:
        if not isinstance(self.hdf5, Path):
            return [Path(self.where)]  # a zip
        found = [self.options, self.hdf5, self.vocab, *super().files()]
        return list({file: None for file in found if isinstance(file, Path)})

    def is_ours(self) -> bool:
        return "spacy_elmo" in read_json(self.options)

    def has_softmax(self) -> bool:
        with self._datasets(SOFTMAX.values()) as datasets:
            return len(datasets) == len(SOFTMAX)

    def softmax(self) -> dict[str, torch.Tensor]:
        source = str(self.hdf5)
        with self._datasets(SOFTMAX.values()) as datasets:
            arrays = {n: read_dataset(datasets[dataset], source) for n, dataset in SOFTMAX.items()}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _datasets(self, names: Iterable[str]) -> AbstractContextManager[dict[str, Any]]:
        return open_datasets(self._local_file, str(self.hdf5), names)

    @cached_property
    def _local_file(self) -> Path | IO[bytes]:
        """The HDF5 file on disk; one in a zip is unpacked, once, to a file without a name, of which
        nothing remains however the process ends."""
        if isinstance(self.hdf5, Path):
            return self.hdf5
        file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, file.close)
        with reading("the HDF5 file", self.hdf5):
            assert isinstance(self.hdf5, zipfile.Path)
            unpack(self.hdf5, file)
            file.flush()
        return file


def write_published(
    model: BiLM, path: Path, softmax: nn.Module | None = None, words: Sequence[str] = ()
) -> None:
    """Write ``options.json`` and ``model.hdf5`` into a directory that exists.

    The published layout has no warm state: it is left out.

    Args:
        model: a biLM.
        path: where to.
        softmax: its head, with ``weight`` ``(V, P)`` and ``bias`` ``(V,)``.
        words: the V words of the head, which become ``vocab.txt``.
    """
    h5py = import_h5py(str(path / MODEL))
    options = to_options(model.config)
    arrays = to_datasets(model.config, model.state_dict())
    if softmax is not None:
        state = softmax.state_dict()
        head = ((dataset, state[name].cpu().float().numpy()) for name, dataset in SOFTMAX.items())
        arrays = chain(arrays, head)
        options["n_tokens_vocab"] = len(words)
        (path / VOCAB).write_text("\n".join(words) + "\n", encoding="utf-8", newline="\n")
    write_json(path / OPTIONS, options)
    in_memory = BytesIO()  # HDF5 crashes where the disk is full
    with h5py.File(in_memory, "w") as file:
        for name, array in arrays:
            file[name] = array
    (path / MODEL).write_bytes(in_memory.getbuffer())
