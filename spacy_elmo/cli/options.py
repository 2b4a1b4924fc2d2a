"""Options that several commands share, checks of what they write, and their results and errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.cli._util import import_code, parse_config_overrides
from spacy.util import load_config
from thinc.api import Config
from wasabi import msg

HELP = "Commands for ELMo, contextual vectors from a bidirectional language model."
app = typer.Typer(name="elmo", help=HELP, no_args_is_help=True)
# Allows settings of the config as options, as `spacy train` does.
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}

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
Force = Annotated[bool, typer.Option("--force", "-F", help="Replace the output if it exists")]
Picture = Annotated[Path | None, typer.Option("--output", "-o", help="Picture to write: .svg, .png, .pdf or .jpg; needs the extra viz", dir_okay=False)]
# fmt: on


@contextmanager
def report_errors(title: str, as_json: bool = False) -> Iterator[None]:
    """Print an expected error to the standard error stream, and exit with code 1.

    Args:
        title: says what cannot be done.
        as_json: print all messages to the standard error stream; the standard output is for JSON.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # if the terminal cannot show a character
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        try:
            yield
        except (ValueError, ImportError, OSError) as error:
            with redirect_stdout(sys.stderr):
                msg.fail(title, str(error), exits=1)


def read_config(ctx: typer.Context, path: Path, code: Path | None) -> Config:
    """Read a config of spaCy, with the settings that were given as options.

    Args:
        ctx: has these options.
        path: the config, or the directory of a pipeline.
        code: Python file to import before.

    Raises:
        ValueError: the config cannot be read.
    """
    from ..util.files import naming_errors

    import_code(code)
    overrides = parse_config_overrides(ctx.args)
    path = path / "config.cfg" if path.is_dir() else path
    with naming_errors("the config", str(path)):  # which may be a pipe
        return load_config(path, overrides)


def count_words(sentences: Iterable[list[str]], quiet: bool = False) -> Iterator[list[str]]:
    """Pass sentences on, and show how many words there are so far."""
    from ..util.progress import ProgressBar

    with ProgressBar("words", quiet=quiet) as progress:
        for words in sentences:
            yield words
            progress.update(len(words))


def check_new(out: Path, force: bool) -> None:
    """Raise a ValueError if a file exists, unless it may be replaced; call this before the work.
    ``-`` is the standard output."""
    if str(out) != "-" and out.exists() and not force:
        raise ValueError(f"'{out}' already exists. Use --force to overwrite it.")


def output_directory(out: Path, force: bool, known: Collection[str]) -> Path:
    """Check that a command may write a directory: a new or an empty one, or one of its own.

    Args:
        out: the path as given.
        force: replace an existing directory.
        known: names of the files that the command writes (names of directories end in ``/``). A
            directory with other files is never replaced.

    Returns:
        The path with links resolved.

    Raises:
        ValueError: files would be lost.
    """
    path, here = out.resolve(), Path.cwd().resolve()
    if path in (here, *here.parents):
        raise ValueError(
            f"'{out}' is the working directory or a parent of it, which is not replaced. Choose a "
            f"new directory."
        )
    existing = next(p for p in (path, *path.parents) if p.exists())
    if not existing.is_dir() or out.suffix == ".zip":
        raise ValueError(f"'{out}' is not a directory. Name a new one.")
    if existing != path or not any(path.iterdir()):
        return path
    if not force:
        raise ValueError(f"'{out}' already exists. Use --force to replace it.")
    unknown = {file.name + "/" * file.is_dir() for file in path.iterdir()} - set(known)
    if unknown:
        raise ValueError(
            f"'{out}' is not replaced, because this command did not write all of it: "
            f"{', '.join(sorted(unknown)[:3])}{' …' if len(unknown) > 3 else ''}. Move these "
            f"files, or choose a new directory."
        )
    return path


def write_new(out: Path, text: str) -> None:
    """Write a file, and create its directory if there is none."""
    from ..util.files import write_text

    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, text)


def print_result(text: str, data: dict[str, Any], as_json: bool, quiet: bool = False) -> None:
    """Print that a command has written ``data["output"]``: a line of text, or the data as JSON."""
    if as_json:
        print_json(data)
    elif not quiet:
        msg.good(text, data["output"])


def print_json(data: Any) -> None:
    """Print data as JSON. An infinite perplexity becomes null, because JSON has no infinity."""
    data = json.loads(json.dumps(data), parse_constant=lambda _: None)
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower() == "utf-8"
    print(json.dumps(data, indent=2, ensure_ascii=not is_unicode))
