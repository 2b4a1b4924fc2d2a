"""The files in a biLM's directory, and its card."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..util.files import members, read_json, read_text, read_whole, reading, write_json

META, VOCAB = "meta.json", "vocab.txt"
DOCUMENTS = ("README.md", "LICENSE")  # travel with the weights wherever they go
CONFIG, WEIGHTS, HEAD = "config.json", "weights.safetensors", "head.safetensors"
STATISTICS = "statistics.safetensors"
FILES = (CONFIG, WEIGHTS, HEAD, STATISTICS, VOCAB, META, *DOCUMENTS)
TEXTS = ("name", "lang", "version", "description", "author", "license", "tokenizer")  # of META
TYPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys((*TEXTS, *DOCUMENTS), (str, "a text")),
    "sources": (list, "a list of objects"),
    "downloaded": (dict, "an object of checksums by address"),
}
MAX_VOCAB_BYTES = 2**26  # the largest published one has 10 MB


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
        if unknown := [name for name in self.documents if name not in DOCUMENTS]:
            raise ValueError(f"The card has a document {unknown[0]!r}; it may have {DOCUMENTS}.")
        for name, value in (self.meta | self.documents).items():
            kind, words = TYPES.get(name, (object, ""))
            if not isinstance(value, kind):
                raise ValueError(f"The card's '{name}' must be {words}, found {value!r}.")
        sources = self.meta.get("sources", [])
        if not all(isinstance(each, dict) for each in sources):
            raise ValueError(f"The card's 'sources' must be a list of objects, found {sources!r}.")

    @classmethod
    def from_dict(cls, data: Any) -> Card:
        """The card of which `dataclasses.asdict` made an object; a ValueError if it is damaged."""
        members(data)
        meta, documents = members({"meta": {}, "documents": {}, **data}, meta=dict, documents=dict)
        return cls(meta, documents)

    @classmethod
    def read(cls, path: Path) -> Card:
        """The card in a directory; empty where there is none.

        Raises:
            ValueError: it is damaged.
        """
        documents = {}
        for file in (path / name for name in DOCUMENTS):
            if file.is_file():
                with reading("the document", file):
                    documents[file.name] = read_text(file)
        meta = read_json(path / META) if (path / META).exists() else {}
        with reading("the card", path / META):
            return cls(meta, documents)

    def save(self, path: Path) -> None:
        """Write it into a directory that exists; an empty card writes no file."""
        if self.meta:
            write_json(path / META, self.meta)
        for name, text in self.documents.items():
            (path / name).write_text(text, "utf-8")


def read_words(path: Path) -> list[str]:
    """The lines of a vocabulary; gzipped if its name ends in ``.gz``.

    Raises:
        ValueError: it cannot be read, is not UTF-8, or is far larger than any vocabulary.
    """
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with reading("the vocabulary", path):
        with opener(path, "rb") as file:
            data: bytes = read_whole(file, MAX_VOCAB_BYTES)
        text = data.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")
