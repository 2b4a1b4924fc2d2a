"""The files in a biLM's directory, and its card."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..util.files import members, naming_errors, read_json, read_text, read_whole, write_json

META, VOCAB = "meta.json", "vocab.txt"
DOCUMENTS = ("README.md", "LICENSE")  # are copied wherever the weights go
CONFIG, WEIGHTS, HEAD = "config.json", "weights.safetensors", "head.safetensors"
STATISTICS = "statistics.safetensors"
FILES = (CONFIG, WEIGHTS, HEAD, STATISTICS, VOCAB, META, *DOCUMENTS)
TEXTS = ("name", "lang", "version", "description", "author", "license", "tokenizer")  # in META
TYPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys((*TEXTS, *DOCUMENTS), (str, "a text")),
    "sources": (list, "a list of objects"),
    "downloaded": (dict, "an object of checksums by address"),
}
MAX_VOCAB_BYTES = 2**26  # the largest published one has 10 MB


@dataclass
class Card:
    """What describes weights: their name, language, licence and sources.

    Attributes:
        meta: the content of ``meta.json``: ``name``, ``lang``, ``version``, ``license``,
            ``sources``, …
        documents: the texts of `DOCUMENTS` by file name.

    Raises:
        ValueError: a value has another type, or a document has another name. Documents become files
            beside the weights, so their names must not come from just any file.
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
        if not all(isinstance(source, dict) for source in sources):
            raise ValueError(f"The card's 'sources' must be a list of objects, found {sources!r}.")

    @classmethod
    def from_dict(cls, data: Any) -> Card:
        """The card from its `dataclasses.asdict`; a ValueError if that is damaged."""
        members(data)
        meta, documents = members({"meta": {}, "documents": {}, **data}, meta=dict, documents=dict)
        return cls(meta, documents)

    @classmethod
    def read(cls, path: Path) -> Card:
        """Read the card in a directory, an empty card if there is none.

        Raises:
            ValueError: the card is damaged.
        """
        documents = {}
        for file in (path / name for name in DOCUMENTS):
            if file.is_file():
                with naming_errors("the document", file):
                    documents[file.name] = read_text(file)
        meta = read_json(path / META) if (path / META).exists() else {}
        with naming_errors("the card", path / META):
            return cls(meta, documents)

    def save(self, path: Path) -> None:
        """Write the card into a directory that exists; an empty card writes no file."""
        if self.meta:
            write_json(path / META, self.meta)
        for name, text in self.documents.items():
            (path / name).write_text(text, "utf-8")


def read_words(path: Path) -> list[str]:
    """Read the lines of a vocabulary, which is gzipped if its name ends in ``.gz``.

    Raises:
        ValueError: the file cannot be read, is not UTF-8, or is far larger than any vocabulary.
    """
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with naming_errors("the vocabulary", path):
        with opener(path, "rb") as file:
            data: bytes = read_whole(file, MAX_VOCAB_BYTES)
        text = data.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")
