"""The sentences of a CoNLL-U file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..text.shards import read_lines

WORD = re.compile(r"\d+\t([^\t]+)")
NO_WORD = re.compile(r"#|\d+[-.]\d+\t")  # comments, ranges and empty nodes


def conllu_sentences_in(file: Path) -> Iterator[list[str]]:
    """The words of each sentence: FORM of the syntactic words, without ranges and empty nodes.

    Raises:
        ValueError: the file cannot be read, or a line is not CoNLL-U.
    """
    words: list[str] = []
    for number, line in enumerate(read_lines(file), 1):
        if word := WORD.match(line):
            words.append(word[1])
        elif not line and words:
            yield words
            words = []
        elif line and not NO_WORD.match(line):
            raise ValueError(
                f"Line {number} of {file} has no ID in its first column, or no word in its "
                f"second, as CoNLL-U requires, with tabs between columns: {line[:40]!r}."
            )
    if words:
        yield words
