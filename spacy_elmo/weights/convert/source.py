"""A biLM in any format, read to be written in ours or in the published one."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ...bilm.model import BiLM
from ...bilm.warm_state import compute_warm_state
from ...util.files import read_json, read_whole, reading, write_bytes
from ..find import find_weights
from ..layout import CONFIG, HEAD, STATISTICS, VOCAB, WEIGHTS, Card, read_words
from ..native import save_bilm
from ..statistics import Statistics
from ..tensors import compact, write_tensors
from . import many_langs
from .published import HDF5, OPTIONS, find_hdf5, read_published, write_published

PACKED_VOCAB = f"{VOCAB}.gz"
MAX_LIST = 2**28  # bytes
LISTS = (".txt", ".txt.xz", ".jsonl", ".cfg")  # of texts, and of a training


@dataclass
class Source:
    """A biLM with all that belongs to it.

    Attributes:
        layout: it was read from, ``"native"``, ``"published"`` or ``"many_langs"``.
        model: the biLM.
        card: its card.
        words: the V words of its head; None without a head, empty if they are unknown, so that the
            head is left out.
        head: ``weight`` ``(V, P)`` and ``bias`` ``(V,)``; empty without words.
        statistics: of its layers and words, None if there are none.
        lists: other files that belong to it, such as lists of texts, by name.
    """

    layout: str
    model: BiLM
    card: Card = field(default_factory=Card)
    words: list[str] | None = None
    head: dict[str, torch.Tensor] = field(default_factory=dict)
    statistics: Statistics | None = None
    lists: dict[str, bytes] = field(default_factory=dict)

    def lacks_warm_state(self) -> bool:
        """Tell whether it needs a warm state that is not stored."""
        return self.model.config.initial_state == "warm" and self.model.warm_h is None

    def compute_warm_state(self, sentences: Sequence[Sequence[str]] | None = None) -> None:
        """Compute the warm state, from the package's passage if there are no sentences; the
        statistics, which are those of another, are dropped."""
        self.model.set_warm_state(compute_warm_state(self.model, sentences))
        self.statistics = None

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
        if self.words:
            write_bytes(path / VOCAB, "".join(f"{word}\n" for word in self.words).encode())
        if layout == "published":
            write_published(self.model, path, self.head)
            return
        save_bilm(self.model, path, half=half)
        if self.head:
            write_tensors(compact(self.head, half), path / HEAD)


def read_source(
    given: Sequence[str | Path], vocab: Path | None = None, with_head: bool = True
) -> Source:
    """A biLM in any format.

    Args:
        given: the name of weights, or else a directory or a zip; or two files.
        vocab: the words of a published head, if they are in another file.
        with_head: read the language model's head, too.

    Raises:
        ValueError: there is no biLM, or it is damaged.
    """
    path = Path(given[0])
    if len(given) > 1:
        options, *hdf5 = sorted(map(Path, given), key=lambda file: file.suffix != ".json")
        if len(hdf5) != 1 or options.suffix != ".json" or hdf5[0].suffix == ".json":
            raise ValueError(f"{list(map(str, given))} are no {OPTIONS} and HDF5 file.")
        source = _read_published(options, hdf5[0], None, vocab)
    elif path.is_file() and path.suffix not in (".json", *HDF5):
        with TemporaryDirectory() as folder:
            try:
                return read_source([unzip(path, Path(folder))], vocab, with_head)
            except ValueError as error:
                raise ValueError(str(error).replace(folder, str(path))) from error
    elif many_langs.is_many_langs(path):
        source = Source("many_langs", many_langs.load(path))
    elif (path / OPTIONS).is_file() and not (path / WEIGHTS).is_file():
        source = _read_published(path / OPTIONS, find_hdf5(path), path, vocab)
    else:
        source = _read_native(given[0])
    if not with_head:
        source.words, source.head = None, {}
    return source


def unzip(path: Path, folder: Path) -> Path:
    """Unpack a zip; a name in it that leads out of the folder is changed to one inside.

    Returns:
        The only folder in it that has a biLM.

    Raises:
        ValueError: it is no zip, is damaged, or has several or no such folders.
    """
    with reading("the zip", path), zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
        found = {file.parent for file in folder.rglob("*.json") if file.name in (OPTIONS, CONFIG)}
        if len(found) != 1:
            number = "several folders" if found else "no folder"
            raise ValueError(f"it has {number} with {OPTIONS} or {CONFIG}")
    return found.pop()


def _read_native(setting: str | Path) -> Source:
    weights = find_weights(setting)
    source = Source("native", weights.load(), weights.card(), statistics=weights.statistics())
    if weights.has_head():
        source.words, head = weights.head()
        source.head = dict(head)
    source.lists = _read_lists(weights.path)
    return source


def _read_published(options: Path, hdf5: Path, folder: Path | None, vocab: Path | None) -> Source:
    """Published weights, with what lies beside them in a folder."""
    beside: Iterable[Path] = () if folder is None else (folder / VOCAB, folder / PACKED_VOCAB)
    vocab = vocab or next(filter(Path.is_file, beside), None)
    words = [] if vocab is None else read_words(vocab)
    model, known, head = read_published(options, hdf5, words, str(vocab))
    source = Source("published", model, words=known, head=head)
    if folder is not None:
        source.card = Card.read(folder)
        if "spacy_elmo" in read_json(options):  # written by `elmo convert`
            source.lists = _read_lists(folder)
            source.statistics = Statistics.read(folder, source.model.config)
        elif source.card.meta:  # with keys of another project
            source.card.meta = {"published": source.card.meta}
    return source


def _read_lists(folder: Path) -> dict[str, bytes]:
    found = {}
    for file in sorted(folder.iterdir()):
        if file.name.endswith(LISTS) and file.name != VOCAB and file.is_file():
            with reading("the file", file), file.open("rb") as opened:
                found[file.name] = read_whole(opened, MAX_LIST)
    return found
