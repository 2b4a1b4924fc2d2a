"""A corpus in rows: text, JSONL, Docs, CoNLL-U, shards or Parquet, read in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..text.readers import FORMATS as TEXT_FORMATS
from ..text.readers import TEXT_SUFFIXES, StoredDocs, read_docbin, read_texts
from ..text.segments import chunks
from ..text.shards import COMPRESSIONS, META, find_files, read_lines
from .block import import_pyarrow, plain_ids, plain_type

CONLLU = tuple(form + packing for form in (".conllu", ".conll") for packing in COMPRESSIONS)
PARQUET = ".parquet"
SUFFIXES = (*TEXT_SUFFIXES, *CONLLU, PARQUET)
FORMATS = f"{TEXT_FORMATS}, CoNLL-U (.conllu) or Parquet"
MAX_ROWS = 4096  # in a chunk, however short they are
BYTES_PER_TOKEN = 5  # roughly, in text

Row = str | list[str]  # a text to tokenize, or words


class Chunk(NamedTuple):
    """Rows that are encoded together.

    Attributes:
        ids: one for each row.
        rows: texts, lists of words, or stored Docs.
        id_type: of the ids, see `Block`; the same in all chunks.
    """

    ids: list[Any]
    rows: list[Row] | StoredDocs
    id_type: str = "int64"


@dataclass(frozen=True)
class RowFiles:
    """Files of rows.

    Args:
        path: a file, a directory of files, or a pattern such as ``texts/*.jsonl.gz``. Rows are the
            lines of text files, the ``"text"`` of each line of JSON, the Docs of ``.spacy`` files,
            the sentences of CoNLL-U, and the ``text`` or ``tokens`` of Parquet. Shards that
            `elmo tokenize` has written are recognized by name and not tokenized again.
        tokenized: text files have words separated by spaces, one sentence per line.
    """

    path: str
    tokenized: bool = False

    def files(self) -> list[Path]:
        """All files, sorted by name.

        Raises:
            ValueError: there are none.
        """
        return find_files(self.path, SUFFIXES, "corpus", FORMATS)

    def id_type(self) -> str | None:
        """The type of the ids that files of Parquet have, as `plain_ids` reads them.

        Returns:
            Its name in Arrow; None if there are no such ids: rows are numbered from 0.

        Raises:
            ValueError: some files have ids and others none, or of another type; or a file of
                Parquet cannot be read.
        """
        found: dict[str | None, Path] = {}
        for file in self.files():
            found.setdefault(_id_type(file) if file.suffix == PARQUET else None, file)
        if len(found) > 1:
            kinds = [f"'{file}' has {kind or 'none'}" for kind, file in found.items()]
            raise ValueError(
                f"The files of a corpus need ids of one type, or none: {', '.join(kinds)}. Give "
                f"each file a column 'id' of the same type, or encode them apart."
            )
        return next(iter(found))

    def fingerprint(self) -> str:
        """Of the files' names and sizes: whether a job that continues has the same corpus."""
        files = [(file.name, file.stat().st_size) for file in self.files()]
        return f"{len(files)} files, {blake2b(repr(files).encode(), digest_size=8).hexdigest()}"

    def chunks(self, n_tokens: int) -> Iterator[Chunk]:
        """All rows in order, always in the same chunks; at least one, which may be empty.

        Args:
            n_tokens: of a chunk, approximately: text is not tokenized here.

        Raises:
            ValueError: a file cannot be read, or see `id_type`.
        """
        first, id_type = 0, self.id_type()
        for is_docs, files in groupby(self.files(), lambda file: file.suffix == ".spacy"):
            if is_docs:
                parts = (part for file in files for part in split_docs(read_docbin(file), n_tokens))
                for part in parts:
                    n_docs = len(part.docs)
                    yield Chunk(list(range(first, first + n_docs)), part)
                    first += n_docs
                continue
            rows = (row for file in files for row in self.read(file))
            limit = n_tokens * BYTES_PER_TOKEN
            for pairs in chunks(rows, limit, MAX_ROWS, lambda pair: size(pair[1])):
                ids, texts = map(list, zip(*pairs, strict=True))
                if id_type is None:
                    ids = list(range(first, first + len(pairs)))
                yield Chunk(ids, texts, id_type or "int64")
                first += len(pairs)
        if first == 0:
            yield Chunk([], [], id_type or "int64")

    def read(self, file: Path) -> Iterator[tuple[Any, Row]]:
        """The rows of a file, with their ids if it has any (else None)."""
        if file.suffix == PARQUET:
            yield from read_parquet(file)
        elif file.name.endswith(CONLLU):
            yield from ((None, words) for words in read_conllu(file))
        elif self.tokenized or is_shard(file):
            yield from ((None, line.split()) for line in read_lines(file))
        else:
            yield from ((None, text) for text in read_texts(file))


def make_sentence(vocab: Vocab, words: list[str], spaces: list[bool] | None = None) -> Doc:
    """A Doc that is a single sentence."""
    starts: list[Any] = [i == 0 for i in range(len(words))]
    return Doc(vocab, words=words, spaces=spaces, sent_starts=starts)


def make_doc(nlp: Language, row: Row) -> Doc:
    """A Doc of a text, or of words that are one sentence; no component runs."""
    return nlp.make_doc(row) if isinstance(row, str) else make_sentence(nlp.vocab, row)


def is_shard(file: Path) -> bool:
    """Tell whether `elmo tokenize` has written a file."""
    return file.name.startswith("shard-") and (file.parent / META).is_file()


def size(row: Row) -> int:
    """Size in characters, with a space after each word."""
    return len(row) if isinstance(row, str) else sum(map(len, row)) + len(row)


def split_docs(stored: StoredDocs, n_tokens: int) -> Iterator[StoredDocs]:
    """Stored Docs in several parts; no Doc is made."""
    docs = stored.docs
    for part in chunks(range(len(docs)), n_tokens, MAX_ROWS, lambda i: len(docs.tokens[i])):
        yield stored.part(part[0], part[-1] + 1)


def read_conllu(file: Path) -> Iterator[list[str]]:
    """The words of each sentence: FORM of the syntactic words, without ranges and empty nodes.

    Raises:
        ValueError: the file cannot be read, or a line is not CoNLL-U.
    """
    words: list[str] = []
    for number, line in enumerate(read_lines(file), 1):
        fields = line.rstrip("\r").split("\t")
        if fields == [""]:
            if words:
                yield words
            words = []
        elif fields[0].isdecimal() and len(fields) > 1:
            words.append(fields[1])
        elif not (line.startswith("#") or fields[0][:1].isdecimal()):
            raise ValueError(
                f"Line {number} of {file} has no ID in its first column, as CoNLL-U requires: "
                f"{line[:40]!r}."
            )
    if words:
        yield words


def text_columns(schema: Any, file: Path) -> list[str]:
    """The columns to read of a Parquet file: ``id``, if there is one, then ``tokens`` or ``text``.

    Raises:
        ValueError: it has neither of the two, or values of another type than (lists of) strings.
    """
    types = import_pyarrow(str(file)).types
    name = next((name for name in ("tokens", "text") if name in schema.names), None)
    if name is None:
        raise ValueError(f"{file} has no column 'text' (strings) or 'tokens' (lists of them).")
    found = kind = schema.field(name).type
    if name == "tokens":
        lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
        kind = kind.value_type if any(is_kind(kind) for is_kind in lists) else None
    if kind is not None and types.is_dictionary(kind):  # a category of pandas or Polars
        kind = kind.value_type
    strings = (types.is_string, types.is_large_string, types.is_string_view)
    if kind is None or not any(is_kind(kind) for is_kind in strings):
        expected = "lists of strings" if name == "tokens" else "strings"
        raise ValueError(
            f"The column '{name}' of {file} has the type {found}; expected {expected}."
        )
    return ["id", name] if "id" in schema.names else [name]


def _id_type(file: Path) -> str | None:
    """The type of the ids of a Parquet file, as `plain_ids` reads them; None without ids."""
    with reading_parquet(file) as parquet:
        schema = parquet.read_schema(file)
        names = text_columns(schema, file)
    return plain_type(schema.field("id").type, str(file)) if names[0] == "id" else None


@contextmanager
def reading_parquet(file: Path) -> Iterator[Any]:
    """Yield ``pyarrow.parquet``, and turn what is wrong with a file into an error that names it."""
    pyarrow = import_pyarrow(str(file))
    try:
        yield pyarrow.parquet
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise ValueError(f"Cannot read {file} as Parquet: {error}") from error


def refuse_nulls(rows: list[Row], source: str) -> None:
    """Raise a ValueError if a row of tokens has a null among them."""
    if any(None in row for row in rows if isinstance(row, list)):
        raise ValueError(f"{source} has a null among the tokens of a row; expected strings.")


def read_parquet(file: Path) -> Iterator[tuple[Any, Row]]:
    """The rows of a Parquet file with a column ``tokens`` or ``text``, and perhaps ``id``.

    Raises:
        ValueError: it has neither, or cannot be read.
    """
    with reading_parquet(file) as parquet:
        table = parquet.ParquetFile(file)
        names = text_columns(table.schema_arrow, file)
        for batch in table.iter_batches(batch_size=MAX_ROWS, columns=names):
            rows = [row if row is not None else "" for row in batch[names[-1]].to_pylist()]
            refuse_nulls(rows, str(file))
            has_ids = names[0] == "id"
            ids = plain_ids(batch["id"], str(file)) if has_ids else [None] * len(rows)
            yield from zip(ids, rows, strict=True)
