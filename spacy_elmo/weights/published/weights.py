"""Published weights: an ``options.json`` and an HDF5 file, in a directory or a zip; in and out."""

from __future__ import annotations

import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch
from torch import nn

from ...bilm.config import BiLMConfig
from ...bilm.model import BiLM
from ...util.files import read_json, reading, write_json
from ..layout import DOCUMENTS, HDF5, META, MODEL, OPTIONS, STATISTICS, VOCAB, WEIGHTS, Weights
from ..native import build
from .datasets import (
    check_dataset,
    check_datasets,
    dataset_names,
    read_dataset,
    to_datasets,
    to_parameters,
)
from .hdf5 import import_h5py, open_datasets
from .options import from_options, to_options

if TYPE_CHECKING:
    from importlib.abc import Traversable

# Weights pack to about nine tenths; what packs to almost nothing fills the disk.
MAX_UNPACKED, MAX_PACKED_RATIO = 2**28, 20
SOFTMAX = {"weight": "softmax/W", "bias": "softmax/b"}


class PublishedWeights(Weights):
    """The files of a published model; `in_folder` and `in_zip` find them.

    Args:
        options: ``options.json``.
        hdf5: the tensors.
        vocab: words of the softmax, one per line, if there is a file of them.
        folder: where to look for a card.
        where: path or name, for messages.
    """

    layout = "published"

    def __init__(
        self,
        options: Traversable,
        hdf5: Traversable,
        vocab: Traversable | None = None,
        folder: Traversable | None = None,
        where: str | None = None,
    ):
        self.options, self.hdf5, self.vocab, self.folder = options, hdf5, vocab, folder
        self.where = where or str(hdf5)
        self._unpacked: IO[bytes] | None = None

    @classmethod
    def in_folder(cls, folder: Traversable, where: str | None = None) -> PublishedWeights:
        """The weights in a directory, or in one inside a zip.

        Raises:
            ValueError: there is no HDF5 file, or there are several and none is `MODEL`.
        """
        where = where or str(folder)
        files = {file.name: file for file in folder.iterdir() if file.is_file()}
        found = sorted(name for name in files if name.endswith(HDF5))
        if MODEL in found:
            found = [MODEL]
        if len(found) != 1:
            raise ValueError(
                f"{where}: expected exactly one *.hdf5 file beside {OPTIONS}, found "
                f"{', '.join(found) or 'none'}."
            )
        vocab = files.get(VOCAB) or files.get(f"{VOCAB}.gz")
        return cls(folder.joinpath(OPTIONS), files[found[0]], vocab, folder, where)

    @classmethod
    def in_zip(cls, path: Path) -> PublishedWeights:
        """The weights in a zip, as the NLPL repository serves them. The names in it never
        decide where a file is unpacked.

        Raises:
            ValueError: the files are not in it.
        """
        return cls.in_folder(folder_in_zip(path, OPTIONS), str(path))

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
        found = [self.options, self.hdf5, *([self.vocab] if self.vocab is not None else [])]
        if self.folder is not None:
            found += [self.folder.joinpath(name) for name in (META, STATISTICS, *DOCUMENTS)]
        on_disk = [file for file in found if isinstance(file, Path) and file.is_file()]
        return on_disk or [Path(self.where)]  # a zip

    def is_ours(self) -> bool:
        return "spacy_elmo" in read_json(self.options)

    def has_head(self) -> bool:
        return self.vocab is not None and self.has_softmax()

    def has_softmax(self) -> bool:
        """Tell whether there is a softmax, with or without its words."""
        with self._datasets(SOFTMAX.values()) as datasets:
            return len(datasets) == len(SOFTMAX)

    def head(self) -> tuple[list[str], dict[str, torch.Tensor]]:
        words, P = self.words(), self.config().projection_dim
        shapes = {"weight": (len(words), P), "bias": (len(words),)}
        reason = f"options.json and the {len(words):,} words of '{self.vocab}'"
        tensors = {}
        with self._datasets(SOFTMAX.values()) as datasets:
            if len(datasets) < len(SOFTMAX):
                raise self.no_head(list(SOFTMAX.values()))
            for name, dataset in SOFTMAX.items():
                check_dataset(dataset, datasets[dataset], shapes[name], str(self.hdf5), reason)
                tensors[name] = torch.from_numpy(read_dataset(datasets[dataset], str(self.hdf5)))
        return words, tensors

    def _datasets(self, names: Iterable[str]) -> AbstractContextManager[dict[str, Any]]:
        return open_datasets(self._local_file, self.hdf5, names)

    def _local_file(self) -> Path | IO[bytes]:
        """The HDF5 file on disk; one in a zip is unpacked, once, to a file without a name, of which
        nothing remains however the process ends."""
        if isinstance(self.hdf5, Path):
            return self.hdf5
        if self._unpacked is None:
            file = tempfile.TemporaryFile()  # noqa: SIM115
            with reading("the HDF5 file", self.hdf5):
                assert isinstance(self.hdf5, zipfile.Path)
                unpack(self.hdf5, file)
                file.flush()
            self._unpacked = file
            weakref.finalize(self, file.close)
        return self._unpacked


def folder_in_zip(path: Path, *names: str) -> zipfile.Path:
    """The folder in a zip, or its top, that has a file of one of these names.

    Raises:
        ValueError: there is none, or there are several.
    """
    root = zipfile.Path(path)
    folders = [root, *(folder for folder in root.iterdir() if folder.is_dir())]
    found = [f for f in folders if any(f.joinpath(name).is_file() for name in names)]
    if len(found) != 1:
        raise ValueError(
            f"'{path}' has {'several' if found else 'no'} {' or '.join(names)}, at its top or in a "
            f"folder there; a zip of weights has one, beside {MODEL} or {WEIGHTS}."
        )
    return found[0]


def unpack(member: zipfile.Path, to: IO[bytes]) -> None:
    """Write the content of a file in a zip.

    Raises:
        ValueError: it is packed better than weights can be.
    """
    info = member.root.getinfo(member.at)
    if info.file_size > MAX_UNPACKED + MAX_PACKED_RATIO * info.compress_size:
        raise ValueError(
            f"'{info.filename}' would unpack to {info.file_size:,} bytes, far more than its "
            f"{info.compress_size:,} can contain. Unpack it yourself to use it anyway"
        )
    with member.open("rb") as packed:
        shutil.copyfileobj(packed, to, 2**20)


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
