"""Published weights: an ``options.json`` and an HDF5 file, in a directory or a zip; in and out."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch
from torch import nn

from ..base_weights import (
    DOCUMENTS,
    META,
    VOCAB,
    Card,
    Weights,
    no_head,
    read_documents,
    read_json,
    read_words,
    readable,
)
from ..config import BiLMConfig
from ..model import BiLM
from ..own_weights import build
from .datasets import (
    check_dataset,
    check_datasets,
    read_dataset,
    to_datasets,
    to_parameters,
)
from .hdf5 import import_h5py, open_datasets
from .options import from_options, to_options

if TYPE_CHECKING:
    from importlib.abc import Traversable

OPTIONS, MODEL = "options.json", "model.hdf5"
FILES = (OPTIONS, MODEL, VOCAB, f"{VOCAB}.gz", META, *DOCUMENTS)
# Weights pack to about nine tenths; what packs to almost nothing fills the disk.
MAX_UNPACKED, MAX_PACKED_RATIO = 2**28, 20
SOFTMAX = {"weight": "softmax/W", "bias": "softmax/b"}


class PublishedWeights(Weights):
    """The files of a published model; `in_folder` and `in_zip` find them.

    Args:
        options: ``options.json``.
        hdf5: the tensors.
        vocab: words of the softmax, one a line, if there is a file of them.
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
        found = sorted(name for name in files if name.endswith((".hdf5", ".h5")))
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
        root = zipfile.Path(path)
        folders = [root, *(folder for folder in root.iterdir() if folder.is_dir())]
        holding = [folder for folder in folders if folder.joinpath(OPTIONS).is_file()]
        if len(holding) != 1:
            raise ValueError(
                f"'{path}' has {'several' if holding else 'no'} {OPTIONS}, at its top or in a "
                f"folder there; a zip of weights has one, and a {MODEL}."
            )
        return cls.in_folder(holding[0], str(path))

    def config(self) -> BiLMConfig:
        with readable(self.options):
            options = read_json(self.options)
        try:
            return from_options(options)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.options}: does not describe a biLM ({error})") from error

    def card(self) -> Card:
        if self.folder is None:
            return Card()
        meta, file = {}, self.folder.joinpath(META)
        with readable(self.folder):
            if file.is_file():
                meta = read_json(file)
                if not self._is_ours() and "spacy_elmo" not in meta:  # `elmo download` writes it
                    meta = {"published": meta}  # with keys of another project
            try:
                return Card(meta, read_documents(self.folder))
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from error

    def load(self) -> BiLM:
        config = self.config()
        with self._datasets() as datasets:
            parameters = to_parameters(config, datasets, source=str(self.hdf5))
        return build(config, parameters, str(self.hdf5))

    def check(self) -> None:
        with self._datasets() as datasets:
            check_datasets(self.config(), datasets, str(self.hdf5))

    def files(self) -> list[Path]:
        found = [self.options, self.hdf5, *([self.vocab] if self.vocab is not None else [])]
        if self.folder is not None:
            found += [self.folder.joinpath(name) for name in (META, *DOCUMENTS)]
        on_disk = [file for file in found if isinstance(file, Path) and file.is_file()]
        return on_disk or [Path(self.where)]  # a zip

    def extra_files(self) -> list[Traversable]:
        if self.folder is None or not self._is_ours():
            return []  # whatever is in the directory of a download
        files = [file for file in self.folder.iterdir() if file.is_file()]
        return [f for f in files if f.name not in FILES and not f.name.endswith((".hdf5", ".h5"))]

    def _is_ours(self) -> bool:
        """Whether `write_published` wrote them."""
        with readable(self.options):
            return "spacy_elmo" in read_json(self.options)

    def has_head(self) -> bool:
        return self.vocab is not None and self.has_softmax()

    def has_softmax(self) -> bool:
        """Whether a softmax is there, with or without its words."""
        with self._datasets() as datasets:
            return all(name in datasets for name in SOFTMAX.values())

    def words(self) -> list[str]:
        if self.vocab is None:
            raise no_head(self.where, [VOCAB])
        with readable(self.vocab):
            return read_words(self.vocab)

    def has_warm_state(self) -> bool:
        return False  # the layout has none

    def head(self) -> tuple[list[str], dict[str, torch.Tensor]]:
        words, P = self.words(), self.config().projection_dim
        shapes = {"weight": (len(words), P), "bias": (len(words),)}
        fact = f"options.json and the {len(words):,} words of '{self.vocab}'"
        tensors = {}
        with self._datasets() as datasets:
            if not all(name in datasets for name in SOFTMAX.values()):
                raise no_head(self.where, list(SOFTMAX.values()))
            for ours, theirs in SOFTMAX.items():
                check_dataset(theirs, datasets[theirs], shapes[ours], str(self.hdf5), fact)
                tensors[ours] = torch.from_numpy(read_dataset(datasets[theirs]))
        return words, tensors

    def _datasets(self) -> AbstractContextManager[Mapping[str, Any]]:
        return open_datasets(self._local_file, str(self.hdf5))

    def _local_file(self) -> Path | IO[bytes]:
        """The HDF5 file on disk; one in a zip is unpacked, once, to a file without a name, of which
        nothing remains however the process ends."""
        if isinstance(self.hdf5, Path):
            return self.hdf5
        if self._unpacked is None:
            file = tempfile.TemporaryFile()  # noqa: SIM115
            with readable(self.hdf5):
                member = self.hdf5.root.getinfo(self.hdf5.at)  # type: ignore[attr-defined]
                if member.file_size > MAX_UNPACKED + MAX_PACKED_RATIO * member.compress_size:
                    raise ValueError(
                        f"'{self.hdf5}' would unpack to {member.file_size:,} bytes, far more than "
                        f"its {member.compress_size:,} can contain. Unpack it yourself if you must."
                    )
                with self.hdf5.open("rb") as packed:
                    shutil.copyfileobj(packed, file, 2**20)
                file.flush()
            self._unpacked = file
        return self._unpacked


def write_published(
    model: BiLM,
    path: Path,
    softmax: nn.Module | None = None,
    words: Sequence[str] = (),
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
        heads = ((theirs, state[ours].cpu().float().numpy()) for ours, theirs in SOFTMAX.items())
        arrays = chain(arrays, heads)
        options["n_tokens_vocab"] = len(words)
        (path / VOCAB).write_text("\n".join(words) + "\n", encoding="utf-8", newline="\n")
    (path / OPTIONS).write_text(json.dumps(options, indent=2) + "\n", encoding="utf-8")
    in_memory = BytesIO()  # HDF5 crashes where the disk is full
    with h5py.File(in_memory, "w") as file:
        for name, array in arrays:
            file[name] = array
    (path / MODEL).write_bytes(in_memory.getbuffer())
