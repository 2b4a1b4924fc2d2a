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
    with reading("the DocBin", path, TypeError, AttributeError, IndexError):  # spaCy's, of others
        data = path.read_bytes()
        most = MAX_UNPACKED + MAX_PACKED_RATIO * len(data)
        unpacker, size = zlib.decompressobj(), 0
        for start in range(0, len(data), 2**14):  # so that never all of it is in memory
            size += len(unpacker.decompress(data[start : start + 2**14]))
            if size > most:
                raise ValueError(f"it unpacks to more than {most:,} bytes")
        yield from DocBin().from_bytes(data).get_docs(vocab)


def stored_docs_in(path: Path) -> Iterator[StoredDoc]:
    """The Docs of a ``.spacy`` file as bytes, whose words get their flags where they are read; see
    `docs_in`."""
    for doc in docs_in(path, Vocab()):
        yield StoredDoc(doc.text, doc.to_bytes(exclude=["tensor"]))
