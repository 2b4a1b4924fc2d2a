"""The sentences of a CoNLL-U file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..text.shards import read_lines

NO_WORD = re.compile(r"\d+[-.]\d+")  # IDs of ranges and of empty nodes


def conllu_sentences_in(file: Path) -> Iterator[list[str]]:
    """The words of each sentence: FORM of the syntactic words, without ranges and empty nodes.

    Raises:
        ValueError: the file cannot be read, or a line is not CoNLL-U.
    """
    words: list[str] = []
    for number, line in enumerate(read_lines(file), 1):
        fields = line.split("\t")
        if fields == [""]:
            if words:
                yield words
            words = []
        elif fields[0].isdecimal() and len(fields) > 1 and fields[1]:
            words.append(fields[1])
        elif not (line.startswith("#") or (fields[1:] and NO_WORD.fullmatch(fields[0]))):
            raise ValueError(
                f"Line {number} of {file} has no ID in its first column, or no word in its "
                f"second, as CoNLL-U requires, with tabs between columns: {line[:40]!r}."
            )
    if words:
        yield words
