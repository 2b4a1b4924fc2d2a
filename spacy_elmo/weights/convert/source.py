"""A biLM in any format, read to be written in ours or in the published one."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import torch

from ...bilm.model import BiLM
from ...util.files import read_json, read_whole, reading, write_bytes
from ..find import find_weights, what_is_missing
from ..layout import CONFIG, DOCUMENTS, HEAD, STATISTICS, VOCAB, WEIGHTS, Card, read_words
from ..native import Weights, compact, save_bilm, write_tensors
from ..saved import weights_in
from ..statistics import Statistics
from . import many_langs
from .published import (
    HDF5,
    OPTIONS,
    find_hdf5,
    has_softmax,
    read_published,
    read_softmax,
    write_published,
)

PACKED_VOCAB = f"{VOCAB}.gz"
MAX_LIST = 2**28  # bytes
LISTS = (".txt", ".txt.xz", ".jsonl", ".cfg")  # of texts, and of a training
KNOWN = (*DOCUMENTS, *HDF5, *LISTS, ".json", ".safetensors", ".txt.gz", ".pkl", ".dic")
ADVICE = (
    f"Give a directory or a zip with {OPTIONS} and one .hdf5 file, with {CONFIG} and {WEIGHTS}, or "
    f"of ELMoForManyLangs; or an {OPTIONS} and an HDF5 file. (bin/dump_weights.py of bilm-tf makes "
    f"the latter of a TensorFlow checkpoint.)"
)


@dataclass
class Source:
    """A biLM with all that belongs to it.

    Attributes:
        layout: it was read from, ``"native"``, ``"published"`` or ``"many_langs"``.
        model: the biLM.
        card: its card.
        words: the V words of its head; None without a head.
        head: ``weight`` ``(V, P)`` and ``bias`` ``(V,)``; empty without one.
        lacks_words: there is a head, but its words are unknown, so that it is left out.
        statistics: of its layers and words, None if there are none.
        lists: other files that belong to it, such as lists of texts, by name.
    """

    layout: str
    model: BiLM
    card: Card = field(default_factory=Card)
    words: list[str] | None = None
    head: dict[str, torch.Tensor] = field(default_factory=dict)
    lacks_words: bool = False
    statistics: Statistics | None = None
    lists: dict[str, bytes] = field(default_factory=dict)

    def save(self, path: Path, layout: str = "native", half: bool = False) -> None:
        """Write everything into a directory that exists.

        Args:
            path: where to.
            layout: ``"native"`` or ``"published"``.
            half: store the weights in half precision (native layout only).
        """
        for name, content in self.lists.items():
            (path / name).write_bytes(content)
        self.card.save(path)
        if self.statistics is not None:
            write_bytes(path / STATISTICS, self.statistics.to_bytes())
        if self.words is not None:
            write_bytes(path / VOCAB, "".join(f"{word}\n" for word in self.words).encode())
        if layout == "published":
            write_published(self.model, path, self.head or None)
            return
        save_bilm(self.model, path, half=half)
        if self.head:
            write_tensors(compact(self.head, half), path / HEAD)


def read_source(
    given: Sequence[str | Path], vocab: Path | None = None, with_head: bool = True
) -> Source:
    """A biLM in any format.

    Args:
        given: a directory or a zip, or else the name of weights; or two files.
        vocab: the words of a published head, if they are in another file.
        with_head: read the language model's head, too.

    Raises:
        ValueError: there is no biLM, or it is damaged.
    """
    path = Path(given[0])
    if len(given) > 1 or not path.is_file() or path.suffix in (".json", *HDF5):
        return _read(given, vocab, with_head)
    with TemporaryDirectory() as folder:
        unzip(path, Path(folder))
        try:
            return _read([folder], vocab, with_head)
        except ValueError as error:
            raise ValueError(str(error).replace(folder, str(path))) from error


def _read(given: Sequence[str | Path], vocab: Path | None, with_head: bool) -> Source:
    path = Path(given[0])
    if len(given) > 1:
        options = [file for file in map(Path, given) if file.suffix == ".json" and file.is_file()]
        hdf5 = [file for file in map(Path, given) if file.suffix != ".json" and file.is_file()]
        if len(options) != 1 or len(hdf5) != 1 or len(given) != 2:
            raise ValueError(f"{list(map(str, given))} are no {OPTIONS} and HDF5 file. {ADVICE}")
        return _read_published(options[0], hdf5[0], None, vocab, with_head)
    if not path.exists():
        return _read_native(find_weights(given[0]), with_head)
    if (path / WEIGHTS).is_file():
        return _read_native(Weights(path), with_head)
    if many_langs.is_many_langs(path):
        return Source("many_langs", many_langs.ManyLangs(path).load())
    if (path / OPTIONS).is_file():
        return _read_published(path / OPTIONS, find_hdf5(path), path, vocab, with_head)
    if found := weights_in(path):
        return _read_native(found, with_head)
    missing = what_is_missing(path) or ADVICE
    raise ValueError(f"'{path}' has no biLM of a known format. {missing}")


def unzip(path: Path, folder: Path) -> None:
    """Unpack the files of a biLM at the top of a zip, or in its only folder that has one.

    Raises:
        ValueError: it is no zip, is damaged, or has several or no such folders.
    """
    with reading("the zip", path), zipfile.ZipFile(path) as archive:
        members = [(PurePosixPath(i.filename), i) for i in archive.infolist() if not i.is_dir()]
        marks = {OPTIONS, CONFIG}
        folders = {name.parent for name, _ in members if name.name in marks}
        if len(folders) != 1:
            raise ValueError(
                f"it has {'several folders' if folders else 'no folder'} with {OPTIONS} or "
                f"{CONFIG}. {ADVICE}"
            )
        for name, info in members:
            if name.parent in folders and name.name.endswith(KNOWN):
                with archive.open(info) as packed, (folder / name.name).open("wb") as file:
                    shutil.copyfileobj(packed, file, 2**20)


def _lists(folder: Path) -> dict[str, bytes]:
    found = {}
    for file in sorted(folder.iterdir()):
        if file.name.endswith(LISTS) and file.name != VOCAB and file.is_file():
            with reading("the file", file), file.open("rb") as opened:
                found[file.name] = read_whole(opened, MAX_LIST)
    return found


def _read_native(weights: Weights, with_head: bool) -> Source:
    source = Source("native", weights.load(), weights.card(), statistics=weights.statistics())
    if with_head and weights.has_head():
        words, head = weights.head()
        source.words, source.head = words, dict(head)
    source.lists = _lists(weights.path)
    return source


def _read_published(
    options: Path, hdf5: Path, folder: Path | None, vocab: Path | None, with_head: bool
) -> Source:
    """Published weights, with what lies beside them in a folder."""
    source = Source("published", read_published(options, hdf5))
    if folder is not None:
        source.card = Card.read(folder)
        if "spacy_elmo" in read_json(options):  # written by `elmo convert`
            source.lists = _lists(folder)
            source.statistics = Statistics.read(folder, source.model.config)
        elif source.card.meta:  # with keys of another project
            source.card.meta = {"published": source.card.meta}
        beside = [folder / name for name in (VOCAB, PACKED_VOCAB) if (folder / name).is_file()]
        vocab = vocab or next(iter(beside), None)
    if with_head and has_softmax(hdf5):
        source.lacks_words = vocab is None
        if vocab is not None:
            size = source.model.config.projection_dim
            source.words, source.head = read_softmax(hdf5, read_words(vocab), size, str(vocab))
    return source
