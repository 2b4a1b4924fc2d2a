"""The interface of weights in every layout, and the files that are the same in all of them."""

from __future__ import annotations

import gzip
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import read_json, read_text, reading, write_json
from ..util.settings import shorten
from .statistics import Statistics
from .subwords import Subwords

if TYPE_CHECKING:
    from importlib.abc import Traversable

META, VOCAB = "meta.json", "vocab.txt"
DOCUMENTS = ("README.md", "LICENSE")  # travel with the weights wherever they go
CONFIG, WEIGHTS, HEAD = "config.json", "weights.safetensors", "head.safetensors"
STATISTICS, SUBWORDS = "statistics.safetensors", "subwords.safetensors"
OPTIONS, MODEL = "options.json", "model.hdf5"  # as published
HDF5 = (".hdf5", ".h5")
FILES = (
    *(CONFIG, WEIGHTS, HEAD, STATISTICS, SUBWORDS, VOCAB, META, *DOCUMENTS),
    *(OPTIONS, MODEL, f"{VOCAB}.gz"),
)
TEXTS = ("name", "lang", "version", "description", "author", "license", "tokenizer")  # of META
MAX_DEPTH = 100  # of lists and objects in META
MAX_VOCAB_BYTES, MAX_VOCAB_WORDS = 2**28, 2**23  # the largest published one has 10 MB


@dataclass
class Card:
    """Name, language, licence and sources of weights.

    Attributes:
        meta: ``meta.json``: ``name``, ``lang``, ``version``, ``license``, ``sources``, …
        documents: texts by file name, of `DOCUMENTS`.

    Raises:
        ValueError: something is of another type, or a document has another name: documents become
            files beside the weights, whoever has written their names.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("meta", "documents"):
            if not isinstance(getattr(self, name), dict):
                raise ValueError(f"The card's '{name}' must be an object.")
        unknown = [name for name in self.documents if name not in DOCUMENTS]
        if unknown:
            raise ValueError(
                f"The card has a document {unknown[0]!r}; it may have {' and '.join(DOCUMENTS)}."
            )
        texts = {**{name: self.meta[name] for name in TEXTS if name in self.meta}, **self.documents}
        wrong = [name for name, text in texts.items() if not isinstance(text, str)]
        if wrong:
            raise ValueError(f"The card's '{wrong[0]}' must be a text, found {texts[wrong[0]]!r}.")
        sources = self.meta.get("sources", [])
        if not isinstance(sources, list) or not all(isinstance(each, dict) for each in sources):
            raise ValueError(f"The card's 'sources' must be a list of objects, found {sources!r}.")
        check_json(self.meta)

    def save(self, path: Path) -> None:
        """Write it into a directory that exists; an empty card writes no file."""
        if self.meta:
            write_json(path / META, self.meta)
        for name, text in self.documents.items():
            (path / name).write_text(text, "utf-8")


def check_json(value: Any, depth: int = 0) -> None:
    """Raise a ValueError for what Python reads from JSON, but no pipeline can be saved with."""
    is_valid = True
    if isinstance(value, dict | list) and depth < MAX_DEPTH:
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            check_json(each, depth + 1)
    elif isinstance(value, str):
        is_valid = not any("\ud800" <= character <= "\udfff" for character in value)
    elif isinstance(value, float):
        is_valid = isfinite(value)
    else:
        is_valid = value is None or (isinstance(value, int) and -(2**63) <= value < 2**64)
    if not is_valid:
        raise ValueError(
            f"The card has {shorten(value)}. Texts must be Unicode without lone surrogates, "
            f"numbers finite and of at most 64 bits, and nesting at most {MAX_DEPTH} deep."
        )


class Weights(ABC):
    """Weights on disk, in either layout; no tensor is read before `load` or `head`.

    Attributes:
        where: their path or name, for messages.
        layout: ``"native"`` or ``"published"``.
        folder: the directory with the card and other files, perhaps in a zip; None if unknown.
        vocab: the file with the words of the head, one per line; None if there is none.
    """

    where: str
    layout: str
    folder: Traversable | None
    vocab: Traversable | None

    @abstractmethod
    def config(self) -> BiLMConfig:
        """The shape of the biLM.

        Raises:
            ValueError: it is missing or wrong.
        """

    @abstractmethod
    def load(self) -> BiLM:
        """The biLM, in float32, in evaluation mode, on the CPU.

        Raises:
            ValueError: something is missing, damaged, or does not fit the config.
        """

    @abstractmethod
    def check(self) -> None:
        """Compare the names and shapes of the tensors with the config; no tensor is read.

        Raises:
            ValueError: something is missing, damaged, or does not fit the config.
        """

    @abstractmethod
    def files(self) -> list[Path]:
        """The files that they are read from, card and head among them; or the zip."""

    @abstractmethod
    def has_head(self) -> bool:
        """Tell whether there are a language model's head and its vocabulary."""

    @abstractmethod
    def head(self) -> tuple[list[str], dict[str, torch.Tensor]]:
        """The head: its V words, and ``weight`` ``(V, P)`` and ``bias`` ``(V,)``, unchecked.

        Raises:
            ValueError: there is none, or it is damaged.
        """

    def has_warm_state(self) -> bool:
        """Tell whether a warm state is stored with them."""
        return False

    def statistics(self) -> Statistics | None:
        """Statistics of the layers and words, of a file beside any layout; None if there is none.

        Raises:
            ValueError: they are damaged, or belong to another biLM.
        """
        file, data = self._read_beside(STATISTICS)
        return None if data is None else Statistics.from_bytes(data, self.config(), file)

    def subwords(self) -> Subwords | None:
        """Static vectors of n-grams, of a file beside any layout; None if there is none.

        Raises:
            ValueError: they are damaged.
        """
        file, data = self._read_beside(SUBWORDS)
        return None if data is None else Subwords.from_bytes(data, file)

    def _read_beside(self, name: str) -> tuple[str, bytes | None]:
        """A file beside the weights, by its name: its path and bytes, None if there is none."""
        file = None if self.folder is None else self.folder.joinpath(name)
        if file is None or not file.is_file():
            return name, None
        with reading("the file", file):
            return str(file), file.read_bytes()

    def is_ours(self) -> bool:
        """Tell whether this package wrote them, in either layout."""
        return True

    def card(self) -> Card:
        """Name, language, licence and so on; empty where there is no card.

        Raises:
            ValueError: it is damaged.
        """
        if self.folder is None:
            return Card()
        file, documents = self.folder.joinpath(META), {}
        meta = read_json(file) if file.is_file() else {}
        if "spacy_elmo" not in meta and meta and not self.is_ours():  # `elmo download` writes it
            meta = {"published": meta}  # with keys of another project
        for path in map(self.folder.joinpath, DOCUMENTS):
            if path.is_file():
                with reading("the document", path):
                    documents[path.name] = read_text(path)
        with reading("the card", file):
            return Card(meta, documents)

    def words(self) -> list[str]:
        """The V words of the head."""
        if self.vocab is None:
            raise self.no_head([VOCAB])
        return read_words(self.vocab)

    def extra_files(self) -> list[Traversable]:
        """Other files that belong to them, such as lists of sources.

        Raises:
            ValueError: one of them, or of the card, is a link out of the directory, perhaps to a
                file of the user's own.
        """
        if self.folder is None or not self.is_ours():
            return []  # whatever is in the directory of a download
        # An installed package has modules beside them; HDF5 files are another model's weights.
        files = [file for file in self.folder.iterdir() if file.is_file()]
        extra = [f for f in files if f.name not in FILES and not f.name.endswith((".py", *HDF5))]
        for file in (f for f in files if f in extra or f.name in (META, *DOCUMENTS)):
            if isinstance(file, Path) and file.resolve().parent != file.parent.resolve():
                raise ValueError(
                    f"'{file}' is a link to '{file.resolve()}', out of its directory, and is not "
                    f"copied. Put the file itself there, or remove the link."
                )
        return extra

    def no_head(self, missing: Sequence[str]) -> ValueError:
        """The error for weights without a head, or without its vocabulary."""
        return ValueError(
            f"The biLM in '{self.where}' comes without a language model's head, so it cannot "
            f"predict words: there is no {' and no '.join(missing)}. Models from `python -m spacy "
            f"elmo pretrain` have one."
        )


def read_words(path: Traversable) -> list[str]:
    """The lines of a vocabulary; gzipped if its name ends in ``.gz``.

    Raises:
        ValueError: it cannot be read, is not UTF-8, or is far larger than any vocabulary.
    """
    with reading("the vocabulary", path):
        is_packed = path.name.endswith(".gz")
        with path.open("rb") as raw, gzip.open(raw) if is_packed else nullcontext(raw) as file:
            data = file.read(MAX_VOCAB_BYTES + 1)
        if len(data) > MAX_VOCAB_BYTES or data.count(b"\n") > MAX_VOCAB_WORDS:
            raise ValueError(
                f"it has more than {MAX_VOCAB_BYTES:,} bytes or {MAX_VOCAB_WORDS:,} lines"
            )
        text = data.decode("utf-8")
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")
