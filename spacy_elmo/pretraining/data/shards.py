"""Sentence shards: text files, a sentence a line, its words separated by single spaces."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import IO, Any

from ...bilm.files import write_text
from .reader import CorpusReader

META = "meta.json"  # tells of the shards beside it
NOTED = ("lang", "tokenizer")
PACKINGS = ("", ".gz", ".xz", ".zst")
SUFFIXES = {"gz": ".txt.gz", "xz": ".txt.xz", "zst": ".txt.zst", "none": ".txt"}


def open_text(path: Path, mode: str = "rt") -> IO[str]:
    """Open UTF-8 text for reading (``"rt"``) or writing (``"wt"``); .gz, .xz, .zst are packed.

    Raises:
        ValueError: .zst needs a library that is not there.
    """
    if path.suffix == ".gz":
        return gzip.open(path, mode, encoding="utf-8", newline="\n")  # type: ignore[return-value]
    if path.suffix == ".xz":
        return lzma.open(path, mode, encoding="utf-8", newline="\n")  # type: ignore[return-value]
    if path.suffix == ".zst":
        return _import_zstd(path).open(path, mode, encoding="utf-8", newline="\n")
    return open(path, mode, encoding="utf-8", newline="\n")


def _import_zstd(path: Path) -> Any:
    try:
        from backports import zstd
    except ImportError:
        raise ValueError(
            f"{path}: .zst needs backports.zstd. Install it with: pip install 'spacy-elmo[zst]'"
        ) from None
    return zstd


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a text file without their ends.

    Raises:
        ValueError: the file cannot be opened, is not UTF-8, or its packing is damaged; the
            message names it.
    """
    try:
        with open_text(path) as file:
            for line in file:
                yield line.rstrip("\n")
    except _damages() as error:
        raise ValueError(f"Cannot read {path} as UTF-8 text: {error}") from error


def _damages() -> tuple[type[Exception], ...]:
    """What a damaged file raises."""
    known = (UnicodeDecodeError, EOFError, OSError, lzma.LZMAError, zlib.error)
    zstd = sys.modules.get("backports.zstd")
    return known if zstd is None else (*known, zstd.ZstdError)


def find_shards(path: str | Path) -> list[Path]:
    """The shard files of a path, see `find_files`."""
    wanted = (
        "a text file or a directory of .txt, .txt.gz, .txt.xz or .txt.zst files, as `python -m "
        "spacy elmo tokenize` writes them"
    )
    return find_files(path, tuple(SUFFIXES.values()), "shards", wanted)


def find_files(path: str | Path, endings: tuple[str, ...], kind: str, wanted: str) -> list[Path]:
    """The files of a path, in order of name: one file, those of a directory that have one of some
    endings, or those of a pattern such as ``corpus/*.txt.gz``.

    Raises:
        ValueError: there are none; the message says of what kind, and what was wanted.
    """
    root = Path(path)
    if root.is_file():
        return [root]
    if not root.exists() and any(character in str(path) for character in "*?["):
        found = sorted(Path(file) for file in glob(str(path), recursive=True))
    else:
        files = root.iterdir() if root.is_dir() else iter([])
        found = sorted(f for f in files if f.name.endswith(endings) and f.name[0] != ".")
    if not found:
        raise ValueError(f"No {kind} at '{path}': expected {wanted}.")
    return found


def read_sentences(path: Path) -> Iterator[list[str]]:
    """The sentences of one shard as lists of words; empty lines are passed over."""
    for line in read_lines(path):
        words = line.split()
        if words:
            yield words


class Shards(CorpusReader):
    """Sentence shards, as `elmo tokenize` writes them.

    Args:
        paths: files, directories of them, or patterns such as ``corpus/*.txt.gz``.
    """

    def __init__(self, paths: str | Path | Sequence[str | Path]):
        self.paths = [paths] if isinstance(paths, (str, Path)) else list(paths)

    def files(self) -> list[Path]:
        return [shard for path in self.paths for shard in find_shards(path)]

    def read(self, file: Path) -> Iterator[list[str]]:
        return read_sentences(file)

    def card(self) -> dict[str, str]:
        return read_meta(self.files())


def without_space(words: Iterable[str]) -> list[str]:
    """Words with white space inside as several, which is what a shard makes of them."""
    return [piece for word in words for piece in word.split()]


def write_shards(
    sentences: Iterable[Sequence[str]],
    out: Path,
    compression: str = "gz",
    words_per_shard: int = 1_000_000,
) -> tuple[int, int]:
    """Write sentences to numbered shards in a directory, one pass, one shard open at a time.

    A shard under way is called ``.part-…``; it gets its name when it is whole.

    Args:
        sentences: lists of words; a word with white space inside becomes several.
        out: a directory, made if missing.
        compression: ``"gz"``, ``"xz"``, ``"zst"`` or ``"none"``.
        words_per_shard: a shard ends with the sentence that reaches this.

    Returns:
        Numbers of sentences and words written.

    Raises:
        ValueError: the compression is unknown, or needs a library that is not there.
    """
    if compression not in SUFFIXES:
        raise ValueError(f"Unknown compression {compression!r}; known are {sorted(SUFFIXES)}.")
    if compression == "zst":
        _import_zstd(out)
    out.mkdir(parents=True, exist_ok=True)
    n_sentences = n_words = n_shards = in_shard = 0
    file: IO[str] | None = None
    final = part = out
    try:
        for words in sentences:
            pieces = without_space(words)
            if not pieces:
                continue
            if file is None:
                final = out / f"shard-{n_shards:05d}{SUFFIXES[compression]}"
                # The packing follows from the ending, so the mark goes before the name.
                part = out / f".part-{final.name}"
                file, in_shard = open_text(part, "wt"), 0
            file.write(" ".join(pieces) + "\n")
            n_sentences += 1
            n_words += len(pieces)
            in_shard += len(pieces)
            if in_shard >= words_per_shard:
                file.close()
                os.replace(part, final)
                file, n_shards = None, n_shards + 1
        if file is not None:
            file.close()
            os.replace(part, final)
            file = None
    finally:
        if file is not None:
            file.close()
            part.unlink(missing_ok=True)
    return n_sentences, n_words


def write_meta(directory: Path, lang: str, tokenizer: str | None = None) -> None:
    """Note beside shards of what language they are, and what made their words.

    Args:
        directory: where they are.
        lang: code of the language.
        tokenizer: registered name of the tokenizer, None for the language's own.
    """
    meta = {"lang": lang}
    if tokenizer is not None:
        meta["tokenizer"] = tokenizer
    write_text(directory / META, json.dumps(meta) + "\n")


def read_meta(shards: Iterable[Path]) -> dict[str, str]:
    """What was noted beside shards; what is not the same beside all of them is left out.

    Raises:
        ValueError: a file of notes is damaged.
    """
    notes = []
    for directory in {shard.parent for shard in shards}:
        path = directory / META
        try:
            data = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        except (OSError, ValueError) as error:
            raise ValueError(f"Cannot read {path}: {error}") from error
        data = data if isinstance(data, dict) else {}
        notes.append({name: data[name] for name in NOTED if isinstance(data.get(name), str)})
    return {
        name: value
        for name, value in (notes[0] if notes else {}).items()
        if all(note.get(name) == value for note in notes)
    }
