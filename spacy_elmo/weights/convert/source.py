"""Reads a biLM in any format, and writes it in ours or in the published one."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from ...bilm.model import BiLM
from ...util.files import naming_errors, read_json, write_bytes
from ..find import find_name, find_weights
from ..layout import CONFIG, HEAD, STATISTICS, VOCAB, WEIGHTS, Card
from ..native import Weights, save_bilm
from ..statistics import Statistics
from ..tensors import Tensors, compact, write_tensors
from . import many_langs
from .published import HDF5, OPTIONS, find_hdf5, read_published, write_published

MAX_RATIO = 100  # at which a zip may unpack: numbers reach three, texts ten


@dataclass
class Source:
    """A biLM with everything that belongs to it.

    Attributes:
        format: the format of its files, ``"native"``, ``"published"`` or ``"many_langs"``.
        model: the biLM.
        words: the V words of the head. None if there is no head; empty if its words are unknown,
            and the head is left out.
        head: ``weight`` ``(V, P)`` and ``bias`` ``(V,)``; empty without words.
        card: the card.
        statistics: the statistics, or None.
    """

    format: str
    model: BiLM
    words: list[str] | None = None
    head: Tensors = field(default_factory=dict)
    card: Card = field(default_factory=Card)
    statistics: Statistics | None = None

    def lacks_warm_state(self) -> bool:
        """Tell if the biLM needs a warm state and has none."""
        return self.model.config.initial_state == "warm" and self.model.warm_h is None

    def compute_warm_state(self, sentences: Sequence[Sequence[str]] | None = None) -> None:
        """Compute the warm state, from the package's passage if no sentences are given. Statistics
        are dropped, for they belong to another state."""
        self.model.warm_h, self.model.warm_c = self.model.compute_warm_state(sentences)
        self.statistics = None

    def save(self, path: Path, format: str = "native", half: bool = False) -> None:
        """Write everything into a directory that exists.

        Args:
            path: the directory.
            format: ``"native"`` or ``"published"``.
            half: store the weights in half precision (native format only).
        """
        self.card.save(path)
        if self.statistics is not None:
            write_bytes(path / STATISTICS, self.statistics.to_bytes())
        if self.words:
            write_bytes(path / VOCAB, "".join(f"{word}\n" for word in self.words).encode())
        if format == "published":
            write_published(self.model, path, self.head)
            return
        save_bilm(self.model, path, half=half)
        if self.head:
            write_tensors(compact(self.head, half), path / HEAD)


def read_source(given: Sequence[str | Path], vocab: Path | None = None) -> Source:
    """Read a biLM in any format.

    Args:
        given: a name or a directory, see `find_weights`; a directory in another format, or a zip;
            or two files.
        vocab: a file with the words of a published head, if it is not beside the head.

    Raises:
        ValueError: there is no biLM, or it is damaged.
    """
    if len(given) > 1:
        options, *hdf5 = sorted(map(Path, given), key=lambda file: file.suffix != ".json")
        if len(hdf5) != 1 or options.suffix != ".json" or hdf5[0].suffix == ".json":
            raise ValueError(f"{list(map(str, given))} are no {OPTIONS} and HDF5 file.")
        return Source("published", *read_published(options, hdf5[0], vocab))
    path = Path(given[0])
    if (native := find_name(given[0])) is not None:
        return _read_native(find_weights(native))
    if path.is_file() and path.suffix not in (".json", *HDF5):
        with TemporaryDirectory() as folder:
            try:
                with naming_errors("the zip", path):
                    return read_source([unzip(path, Path(folder))], vocab)
            except ValueError as error:  # the folder is gone when the user reads this
                text = str(error).replace(f"{folder}{os.sep}", "").replace(folder, str(path))
                raise ValueError(text) from error
    if many_langs.is_many_langs(path):
        return Source("many_langs", many_langs.load(path))
    if (path / OPTIONS).is_file() and not (path / WEIGHTS).is_file():
        return _read_folder(path, vocab)
    return _read_native(find_weights(given[0]))


def _read_native(weights: Weights) -> Source:
    words, head = weights.head() if weights.has_head() else (None, {})
    return Source("native", weights.load(), words, head, weights.card(), weights.statistics())


def unzip(path: Path, folder: Path) -> Path:
    """Unpack the biLM in a zip. Names that lead out of the folder are changed to names inside.

    Args:
        path: the zip.
        folder: the folder to unpack to.

    Returns:
        The only folder in the zip that has a biLM.

    Raises:
        ValueError: several or no folders have a biLM, or the zip would unpack to far more than
            weights do; nothing is unpacked.
        zipfile.BadZipFile: the file is no zip, or is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        files = [item for item in archive.infolist() if not item.is_dir()]
        names = [PurePosixPath(item.filename) for item in files]
        folders = {name.parent for name in names if name.name in (OPTIONS, CONFIG)}
        if len(folders) != 1:
            raise ValueError(f"it has {len(folders)} folders with {OPTIONS} or {CONFIG}, not one")
        files = [item for item, name in zip(files, names, strict=True) if name.parent in folders]
        # Python's library unpacks no more of a file than this size.
        size, most = sum(item.file_size for item in files), MAX_RATIO * path.stat().st_size
        if size > most:
            raise ValueError(
                f"its files have {size:,} bytes, more than {MAX_RATIO} times those of the zip, "
                f"which weights never have"
            )
        for item in files:
            unpacked = Path(archive.extract(item, folder))
    return unpacked.parent


def _read_folder(folder: Path, vocab: Path | None) -> Source:
    """Read published weights, with the files beside them."""
    beside = folder / VOCAB, folder / f"{VOCAB}.gz"
    vocab = vocab or next(filter(Path.is_file, beside), None)
    published = read_published(folder / OPTIONS, find_hdf5(folder), vocab)
    source = Source("published", *published, Card.read(folder))
    if "spacy_elmo" in read_json(folder / OPTIONS):  # written by `elmo convert`
        source.statistics = Statistics.read(folder, source.model.config)
    elif source.card.meta:  # the file of another project, with other keys
        source.card.meta = {"published": source.card.meta}
    return source
