"""``python -m spacy elmo tokenize``: converts raw text to sentence shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options


@options.app.command("tokenize")
def tokenize_cli(
    paths: Annotated[list[Path], typer.Argument(help='Texts, directories of them or patterns, then the directory to write. A text is a .txt file with one paragraph per line, a .jsonl, .csv or .tsv file (each also .gz or .xz), a .parquet file, or a .spacy file of Docs', metavar="TEXT... OUT")],
    lang: options.TextLang = "en",
    tokenizer: Annotated[str | None, typer.Option("--tokenizer", "-t", help="Registered tokenizer (default: the tokenizer of the language). spacy.Tokenizer.v1 is spaCy's rule-based one, for languages whose own tokenizer needs another package")] = None,
    column: options.Column = None,
    n_process: options.Processes = 1,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """
    Convert raw text to sentence shards for pretraining.

    spaCy's tokenizer for the language splits each paragraph into words, and sentences end after
    sentence-final punctuation, as in the elmo component. Docs keep their tokens, and their
    sentences if they have any. Shards are text files (.txt.gz) with one sentence per line and words
    separated by spaces. A meta.json beside them names the language and the tokenizer, and so will
    weights that are trained on them. The directory appears when all of it is written.
    """
    from ..text.files import META, find_files
    from ..text.readers import blank, tokenize_files
    from ..text.shards import write_meta, write_shards
    from ..util.files import atomic_directory

    with options.report_errors("Cannot tokenize", as_json=as_json):
        *texts, out = paths
        if not texts:
            raise ValueError("Give at least one text, then the directory to write to.")
        files = find_files(texts)
        known = {META, *(shard.name for shard in out.glob("shard-*.txt.gz"))}
        path = options.output_directory(out, force, known)
        sentences = tokenize_files(blank(lang, tokenizer), files, n_process, column)
        with atomic_directory(path) as directory:
            counted = options.count_words(sentences, quiet)
            n_sentences, n_words = write_shards(counted, directory)
            if not n_words:
                names = ", ".join(map(repr, map(str, texts)))
                raise ValueError(f"There are no words in {names}. Give a text that has some.")
            write_meta(directory, lang, tokenizer)
    data = {"output": str(out), "sentences": n_sentences, "words": n_words}
    options.print_result(f"{n_words:,} words in {n_sentences:,} sentences", data, as_json, quiet)
