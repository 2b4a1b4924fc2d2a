"""The interface of weights in every layout, and the files that are the same in all of them."""

from __future__ import annotations

import gzip
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import read_json, read_text, read_whole, reading, write_json
from ..util.settings import shorten
from .statistics import Statistics

if TYPE_CHECKING:
    from importlib.abc import Traversable

META, VOCAB = "meta.json", "vocab.txt"
DOCUMENTS = ("README.md", "LICENSE")  # travel with the weights wherever they go
CONFIG, WEIGHTS, HEAD = "config.json", "weights.safetensors", "head.safetensors"
STATISTICS = "statistics.safetensors"
OPTIONS, MODEL = "options.json", "model.hdf5"  # as published
HDF5 = (".hdf5", ".h5")
FILES = (
    *(CONFIG, WEIGHTS, HEAD, STATISTICS, VOCAB, META, *DOCUMENTS),
    *(OPTIONS, MODEL, f"{VOCAB}.gz"),
)
TEXTS = ("name", "lang", "version", "description", "author", "license", "tokenizer")  # of META
MAX_DEPTH = 100  # of lists and objects in META
MAX_VOCAB_BYTES, MAX_VOCAB_WORDS = 2**28, 2**23  # the largest published one has 10 MB
MAX_ZIPPED = 2**28  # bytes of statistics in a zip


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
        if not isinstance(self.meta, dict) or not isinstance(self.documents, dict):
            raise ValueError("The card's 'meta' and 'documents' must be objects.")
        for name in self.documents:
            if name not in DOCUMENTS:
                allowed = " and ".join(DOCUMENTS)
                raise ValueError(f"The card has a document {name!r}; it may have {allowed}.")
        for name, value in (self.meta | self.documents).items():
            if name in (*TEXTS, *DOCUMENTS) and not isinstance(value, str):
                raise ValueError(f"The card's '{name}' must be a text, found {value!r}.")
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
    """Weights on disk, in any layout; no tensor is read before `load` or `head`.

    Attributes:
        where: their path or name, for messages.
        layout: ``"native"`` or ``"published"``.
        folder: the directory with the card and other files, perhaps in a zip; None if unknown.
        vocab: the file with the words of the head, one per line; None if there is none.
    """

    where: str
    layout: str
    folder: Traversable | None
    vocab: Traversable | None = None

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

    def is_ours(self) -> bool:
        """Tell whether this package wrote them, in either layout."""
        return True

    def has_warm_state(self) -> bool:
        """Tell whether a warm state is stored with them."""
        return False

    def has_softmax(self) -> bool:
        """Tell whether a language model's head is stored with them, with or without its words."""
        return False

    def softmax(self) -> dict[str, torch.Tensor]:
        """The tensors of the head, ``weight`` ``(V, P)`` and ``bias`` ``(V,)``, unchecked."""
        raise NotImplementedError

    def has_head(self) -> bool:
        """Tell whether there are a language model's head and its vocabulary."""
        return self.vocab is not None and self.has_softmax()

    def head(self) -> tuple[list[str], dict[str, torch.Tensor]]:
        """The V words of the head, and its tensors, see `softmax`.

        Raises:
            ValueError: there is none, or it is damaged.
        """
        if not self.has_softmax():
            raise self._no_head()
        return self.words(), self.softmax()

    def words(self) -> list[str]:
        """The V words of the head.

        Raises:
            ValueError: there are none, or they are damaged.
        """
        if self.vocab is None:
            raise self._no_head()
        return read_words(self.vocab)

    def _no_head(self) -> ValueError:
        return ValueError(
            f"The biLM in '{self.where}' comes without a language model's head, or without its "
            f"words ({VOCAB}), so it cannot predict words. Models from `python -m spacy elmo "
            f"pretrain` have both."
        )

    # The files beside the tensors

    def beside(self, name: str) -> Traversable | None:
        """A file in the directory, by its name; None if there is none."""
        file = None if self.folder is None else self.folder.joinpath(name)
        return file if file is not None and file.is_file() else None

    def files(self) -> list[Path]:
        """The files that they are read from, card and head among them; or the zip."""
        return [file for file in map(self.beside, FILES) if isinstance(file, Path)]

    def statistics(self) -> Statistics | None:
        """Statistics of the layers and words; None if there are none.

        Raises:
            ValueError: they are damaged, or belong to another biLM.
        """
        file = self.beside(STATISTICS)
        if file is None:
            return None
        with reading("the file", file), file.open("rb") as opened:
            # What a zip packs to a few bytes may fill the memory.
            data = opened.read() if isinstance(file, Path) else read_whole(opened, MAX_ZIPPED)
        return Statistics.from_bytes(data, self.config(), f"{self.where}/{STATISTICS}")

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
        for document in filter(None, map(self.beside, DOCUMENTS)):
            if target := _outside(document):  # documents are copied into whatever is made of them
                warnings.warn(
                    f"'{document}' is a link to '{target}', out of its directory, and is left out.",
                    stacklevel=2,
                )
                continue
            with reading("the document", document):
                documents[document.name] = read_text(document)
        with reading("the card", file):
            return Card(meta, documents)

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
            if target := _outside(file):
                raise ValueError(
                    f"'{file}' is a link to '{target}', out of its directory, and is not copied. "
                    f"Put the file itself there, or remove the link."
                )
        return extra


def _outside(file: Traversable) -> Path | None:
    """What a file is a link to, if that is in another directory."""
    if not isinstance(file, Path):
        return None
    target = file.resolve()
    return None if target.parent == file.parent.resolve() else target


def read_words(path: Traversable) -> list[str]:
    """The lines of a vocabulary; gzipped if its name ends in ``.gz``.

    Raises:
        ValueError: it cannot be read, is not UTF-8, or is far larger than any vocabulary.
    """
    with reading("the vocabulary", path):
        is_packed = path.name.endswith(".gz")
        with path.open("rb") as raw:
            file: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
            data: bytes = read_whole(file, MAX_VOCAB_BYTES)
        if data.count(b"\n") > MAX_VOCAB_WORDS:
            raise ValueError(f"it has more than {MAX_VOCAB_WORDS:,} lines")
        text = data.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def refuse_others(where: str, names: Collection[str]) -> None:
    """Raise a ValueError for files of an ELMo of a kind that cannot be loaded."""
    if "encoder.pkl" in names and "token_embedder.pkl" in names:
        if where.endswith(".zip"):
            advice = "unpack it, and convert the directory with `python -m spacy elmo convert`"
        else:
            advice = f"convert it with `python -m spacy elmo convert {where} OUT`"
        raise ValueError(
            f"'{where}' is a model of ELMoForManyLangs, whose pickled files are not read here: "
            f"{advice}."
        )
    is_checkpoint = any(name.startswith("model.ckpt") for name in names)
    if is_checkpoint and not any(name.endswith(HDF5) for name in names):
        raise ValueError(
            f"'{where}' is a TensorFlow checkpoint of bilm-tf (model.ckpt-…). Write its weights to "
            f"an HDF5 file first, with that project's bin/dump_weights.py."
        )
