"""What every layout of weights offers, and the files that are the same in all of them."""

from __future__ import annotations

import gzip
import json
import lzma
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .config import BiLMConfig
from .model import BiLM
from .statistics import Statistics

if TYPE_CHECKING:
    from importlib.abc import Traversable

META, VOCAB = "meta.json", "vocab.txt"
DOCUMENTS = ("README.md", "LICENSE")  # travel with the weights wherever they go
TEXTS = ("name", "lang", "version", "description", "author", "license", "tokenizer")  # of META
DAMAGED = (zlib.error, lzma.LZMAError)  # what unpacking raises beside the system's errors
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
        for name, kind in (("meta", dict), ("documents", dict)):
            if not isinstance(getattr(self, name), kind):
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


class Weights(ABC):
    """Weights on disk, in either layout; no tensor is read before `load` or `head`.

    Attributes:
        where: their path or name, for messages.
        layout: ``"own"`` or ``"published"``.
    """

    where: str
    layout: str

    @abstractmethod
    def config(self) -> BiLMConfig:
        """The shape of the biLM.

        Raises:
            ValueError: it is missing or wrong.
        """

    @abstractmethod
    def card(self) -> Card:
        """Name, language, licence and so on; empty where there is no card."""

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
    def extra_files(self) -> list[Traversable]:
        """Other files that belong to them, such as lists of sources."""

    @abstractmethod
    def has_head(self) -> bool:
        """Whether there are a language model's head and its vocabulary."""

    @abstractmethod
    def words(self) -> list[str]:
        """The V words of the head."""

    @abstractmethod
    def has_warm_state(self) -> bool:
        """Whether a warm state is stored with them."""

    def statistics(self) -> Statistics | None:
        """Statistics of the layers and words; None if there are none.

        Raises:
            ValueError: they are damaged, or belong to another biLM.
        """
        return None

    @abstractmethod
    def head(self) -> tuple[list[str], dict[str, torch.Tensor]]:
        """The head: its V words, and ``weight`` ``(V, P)`` and ``bias`` ``(V,)``, unchecked.

        Raises:
            ValueError: there is none, or it is damaged.
        """


def no_head(where: str, missing: Sequence[str]) -> ValueError:
    """The error for weights without a head, or without its vocabulary."""
    return ValueError(
        f"The biLM in '{where}' comes without a language model's head, so it cannot predict words: "
        f"there is no {' and no '.join(missing)}. Models from `python -m spacy elmo pretrain` have "
        f"one."
    )


@contextmanager
def readable(file: Traversable) -> Iterator[None]:
    """Whatever is wrong with a file, or with the zip around it, becomes one error."""
    try:
        yield
    except (OSError, RuntimeError, EOFError, zipfile.BadZipFile, *DAMAGED) as error:
        raise ValueError(f"Cannot read '{file}': {error}") from error


def read_json(path: Traversable) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ValueError: it cannot be read, or is something else.
    """
    check_regular(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, KeyError) as error:
        raise ValueError(f"{path}: cannot be read ({error}).") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is not valid JSON ({error}).") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} must be a JSON object, found {type(data).__name__}.")
    return data


def check_regular(path: Traversable) -> None:
    """Raise a ValueError if a path is a pipe or a device, from which reading may never end."""
    if isinstance(path, Path) and path.exists() and not path.is_file():
        raise ValueError(f"{path}: is not a file.")


def read_documents(directory: Traversable) -> dict[str, str]:
    """The card and the licence in a directory, as far as they are there.

    Raises:
        ValueError: one is not UTF-8 text.
    """
    files = {name: directory.joinpath(name) for name in DOCUMENTS}
    try:
        return {name: file.read_text("utf-8") for name, file in files.items() if file.is_file()}
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The {' or '.join(DOCUMENTS)} in '{directory}' is not UTF-8 text: {error}"
        ) from error


def read_words(path: Traversable) -> list[str]:
    """The lines of a vocabulary; gzipped if its name ends in ``.gz``.

    Raises:
        ValueError: it cannot be read, is not UTF-8, or is far larger than any vocabulary.
    """
    check_regular(path)
    try:
        is_packed = path.name.endswith(".gz")
        with path.open("rb") as raw, gzip.open(raw) if is_packed else nullcontext(raw) as file:
            data = file.read(MAX_VOCAB_BYTES + 1)
        if len(data) > MAX_VOCAB_BYTES or data.count(b"\n") > MAX_VOCAB_WORDS:
            raise ValueError(
                f"it has more than {MAX_VOCAB_BYTES:,} bytes or {MAX_VOCAB_WORDS:,} lines"
            )
        text = data.decode("utf-8")
    except (OSError, EOFError, KeyError, ValueError, *DAMAGED) as error:
        raise ValueError(f"Cannot read the vocabulary {path}: {error}") from error
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")
