"""``python -m spacy elmo tokenize``: raw text to sentence shards."""

from __future__ import annotations

from pathlib import Path

import typer
from wasabi import msg

from ..pretraining.data.shards import write_meta, write_shards
from ..readers import BY_RULES, blank, read_sentences_of


def tokenize_cli(
    # fmt: off
    paths: list[Path] = typer.Argument(
        ...,
        help='Texts: one paragraph a line (.txt), JSON with a "text" a line (.jsonl), both also .gz, .xz or .zst, or Docs (.spacy); and last the directory to write',
        metavar="TEXT... OUT",
    ),
    lang: str = typer.Option("en", "--lang", "-l", help="Language whose tokenizer is used"),
    tokenizer: str = typer.Option(
        None,
        "--tokenizer",
        "-t",
        help=f"Registered tokenizer, if not the language's own: {BY_RULES} is spaCy's by rules, for languages whose own needs another package",
    ),
    compression: str = typer.Option(
        "gz", "--compression", "-c", help="Packing of the shards: gz, xz, zst or none"
    ),
    words_per_shard: int = typer.Option(
        1_000_000, "--words-per-shard", "-w", min=1, help="Size of a shard"
    ),
    n_process: int = typer.Option(1, "--n-process", "-n", min=1, help="Number of processes"),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print nothing but errors"),
    # fmt: on
) -> None:
    """
    Turn raw text into sentence shards for pretraining.

    Each paragraph is tokenized by spaCy's tokenizer of the language and split into sentences by
    the same function that the elmo component uses on a Doc without sentence boundaries. Docs keep
    their tokens, and their sentences if they have any.
    The shards are text: a sentence a line, its words separated by spaces; meta.json beside them
    names the language and the tokenizer, which the biLMs trained on them will be known by.
    """
    if len(paths) < 2:
        msg.fail("Give at least one text and the directory to write to.", exits=1)
    *texts, out = paths
    for text in texts:
        if not text.is_file():
            msg.fail(f"There is no text file '{text}'.", exits=1)
    if out.exists() and not out.is_dir():
        msg.fail(
            f"The last argument has to be a directory to write to; '{out}' is a file.", exits=1
        )
    if out.is_dir() and any(out.iterdir()):
        msg.fail(f"The directory '{out}' is not empty; remove it or choose another.", exits=1)
    try:
        nlp = blank(lang, tokenizer)
        sentences = read_sentences_of(nlp, texts, n_process)
        n_sentences, n_words = write_shards(sentences, out, compression, words_per_shard)
        write_meta(out, lang, tokenizer)
    except (ValueError, ImportError, OSError) as error:
        msg.fail("Cannot tokenize", str(error), exits=1)
    if not quiet:
        msg.good(f"{n_words:,} words in {n_sentences:,} sentences", str(out))
