"""Options that several commands share, and how they print errors and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from wasabi import msg

# fmt: off
BiLMName = Annotated[str, typer.Option("--weights", "-w", help="Name or directory of a biLM")]
WeightsName = Annotated[str, typer.Option("--weights", "-w", help="Name or directory of a biLM with a language-model head")]
TextLang = Annotated[str, typer.Option("--lang", "-l", help="Language of the text")]
TokenizerLang = Annotated[str | None, typer.Option("--lang", "-l", help="Language of the text (default: the language of the weights)")]
GpuId = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU")]
Code = Annotated[Path | None, typer.Option("--code", "-c", help="Python file with code of your own (registered functions) to be imported")]
Column = Annotated[str | None, typer.Option("--column", help="Column of .jsonl (a key), .csv, .tsv or .parquet that has the texts (default: text)")]
Processes = Annotated[int, typer.Option("--n-process", "-n", min=1, help="Number of processes, at most one for each processor; each computes on one core")]
Json = Annotated[bool, typer.Option("--json", "-j", help="Output JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no messages")]
Force = Annotated[bool, typer.Option("--force", "-F", help="Replace what an earlier command has written")]
Picture = Annotated[Path | None, typer.Option("--output", "-o", help="Picture to write: .svg, .png, .pdf or .jpg; needs the extra viz", dir_okay=False)]
# fmt: on


@contextmanager
def report_errors(title: str, as_json: bool = False) -> Iterator[None]:
    """Print an expected error to the standard error stream, and exit with code 1.

    Args:
        title: what cannot be done.
        as_json: print everything there, because the standard output is for the JSON.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # where the output lacks characters
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        try:
            yield
        except (ValueError, ImportError, OSError) as error:
            with redirect_stdout(sys.stderr):
                msg.fail(title, str(error), exits=1)


def count_words(sentences: Iterable[list[str]], quiet: bool = False) -> Iterator[list[str]]:
    """Pass sentences on unchanged, and show how many words they have."""
    from ..util.progress import ProgressBar

    with ProgressBar("words", quiet=quiet) as progress:
        for words in sentences:
            yield words
            progress.update(len(words))


def check_new(out: Path, force: bool) -> None:
    """Raise a ValueError if there is a file already and force is False; before the work begins."""
    if out.exists() and not force:
        raise ValueError(f"'{out}' already exists. Use --force to overwrite it.")


def write_new(out: Path, text: str) -> None:
    """Write a file, in a directory that is made if it is missing."""
    from ..util.files import write_text

    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, text)


def print_result(text: str, data: dict[str, Any], as_json: bool, quiet: bool = False) -> None:
    """Print what a command has written to ``data["output"]``: a line of text, or all as JSON."""
    if as_json:
        print_json(data)
    elif not quiet:
        msg.good(text, data["output"])


def print_json(data: Any) -> None:
    """Print data as JSON, which has no infinity: such a perplexity is null."""
    data = json.loads(json.dumps(data), parse_constant=lambda _: None)
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower() == "utf-8"
    print(json.dumps(data, indent=2, ensure_ascii=not is_unicode))
