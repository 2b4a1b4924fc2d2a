"""The Docs of a ``.spacy`` file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..util.files import reading

MAX_UNPACKED, MAX_PACKED_RATIO = 2**28, 200  # repeated Docs pack to 1 in 130


class StoredDoc(NamedTuple):
    """A Doc on its way to another process.

    Attributes:
        text: of the Doc.
        data: all of it but its tensor, as bytes.
    """

    text: str
    data: bytes


def docs_in(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """The Docs of a ``.spacy`` file, one after another.

    Raises:
        ValueError: it cannot be read, or a Doc is damaged.
    """
    with reading("the DocBin", path):
        _check_unpacked_size(path)
        docs = DocBin().from_disk(path).get_docs(vocab)
    while True:
        with reading("the DocBin", path):
            doc = next(docs, None)
        if doc is None:
            return
        yield doc


def stored_docs_in(path: Path) -> Iterator[StoredDoc]:
    """The Docs of a ``.spacy`` file as bytes; see `docs_in`."""
    for doc in docs_in(path, Vocab()):
        yield StoredDoc(doc.text, doc.to_bytes(exclude=["tensor"]))


def _check_unpacked_size(path: Path) -> None:
    """Raise a ValueError if a ``.spacy`` file unpacks to far more than its Docs can need."""
    most = MAX_UNPACKED + MAX_PACKED_RATIO * path.stat().st_size
    unpacker, size = zlib.decompressobj(), 0
    with path.open("rb") as file:
        while chunk := file.read(2**14):
            size += len(unpacker.decompress(chunk))
            if size > most:
                raise ValueError(f"it unpacks to more than {most:,} bytes")
            if unpacker.unused_data:
                raise ValueError("it has more after its end")
