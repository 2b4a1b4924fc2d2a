"""Encodes a corpus in parts, in one process or several, and joins them: a killed job can resume."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..about import __version__
from ..util.files import read_json, write_json
from ..util.progress import ProgressBar
from ..util.workers import map_in_processes
from .block import Block
from .encoder import Encoder
from .formats import WRITERS, check_format, output_files
from .rows import Chunk, RowFiles

CHUNK_TOKENS = 16384  # of a part


class Summary(NamedTuple):
    """Size of what was encoded.

    Attributes:
        n_rows: lines, sentences or Docs.
        n_vectors: of all rows together.
    """

    n_rows: int
    n_vectors: int


def encode(
    corpus: str | Path,
    out: str | Path,
    *,
    weights: str | Sequence[str] = "en_sm",
    pipeline: str | Path | None = None,
    component: str | None = None,
    format: str | None = None,
    layers: str = "mix",
    level: str = "tokens",
    dtype: str = "float32",
    precision: str | None = None,
    compiled: bool = False,
    lang: str | None = None,
    tokenized: bool = False,
    n_process: int = 1,
    resume: bool = False,
    ray: str | None = None,
    quiet: bool = True,
) -> Summary:
    """Write the vectors of a corpus to a file, one row for each line or Doc, in order.

    Each process computes on one thread. The result is the same to the last bit, whatever the number
    of processes, and however often the job was killed and resumed. While it runs, finished parts
    are in a directory beside the file (``OUT.parts``); a description with all settings stays
    (``OUT.json``).

    Args:
        corpus, tokenized: see `RowFiles`.
        out: the file to write. With ``ray`` a directory, on storage that all machines share.
        weights, pipeline, component, layers, level, dtype, precision, compiled, lang: see
            `Encoder`.
        format: ``"parquet"``, ``"hdf5"``, ``"npy"`` or ``"docbin"``; None for what the suffix of
            the file says.
        n_process: number of processes.
        resume: continue a job that was interrupted, if there is one.
        ray: address of a Ray cluster to run on, with ``n_process`` actors; ``"local"`` starts one
            on this machine.
        quiet: show no progress.

    Raises:
        ValueError: a setting is unknown or does not fit the others, the corpus, the weights or a
            library are missing, or there is something else at ``out``.
    """
    out = Path(out)
    format = check_format(format, out, default=None if ray is None else "parquet")  # a directory
    encoder = Encoder(
        weights if isinstance(weights, str) else tuple(map(str, weights)),
        pipeline if pipeline is None else str(pipeline),
        component, layers, level, dtype, lang, docs=format == "docbin", precision=precision,
        compiled=compiled,
    )  # fmt: skip
    read = RowFiles(str(corpus), tokenized)
    read.id_type()  # an error here is clearer than one later
    if ray is not None:
        from .on_ray import encode_on_ray

        if format != "parquet" or resume:
            raise ValueError(
                "On Ray only --format parquet is written, and Ray itself retries what fails: drop "
                "--resume and other formats."
            )
        return Summary(*encode_on_ray(read, out, encoder, ray, n_process))
    refuse_corpus(read, output_files(format, out))
    description, parts = Path(f"{out}.json"), Path(f"{out}.parts")
    if not resume:
        refuse_existing([*output_files(format, out), description, parts])
    settings = {
        **asdict(encoder),
        "format": format,
        "tokenized": tokenized,
        "corpus": read.fingerprint(),
        "checksum": encoder.checksum(),
        "version": __version__,
    }
    state = read_description(description, settings)
    if not state:
        for path in filter(Path.exists, (*output_files(format, out), parts)):
            raise ValueError(
                f"'{path}' exists, but without the description of its job, '{description}', so "
                f"nothing can be resumed. Remove it."
            )
    if "n_rows" not in state or not all(map(Path.exists, output_files(format, out))):
        description.parent.mkdir(parents=True, exist_ok=True)
        write_json(description, {"settings": settings})  # before any part: no part is without it
        parts.mkdir(exist_ok=True)
        sizes = encode_parts(read, parts, encoder, n_process, quiet)
        WRITERS[format](out, sorted(parts.glob("*.npz")))
        state = Summary(*map(sum, zip(*sizes, strict=True)))._asdict()
        write_json(description, {"settings": settings, **state})
    shutil.rmtree(parts, ignore_errors=True)
    return Summary(state["n_rows"], state["n_vectors"])


def refuse_corpus(corpus: RowFiles, paths: Sequence[Path]) -> None:
    """Raise a ValueError if a file to write is one of the corpus."""
    files = {file.resolve() for file in corpus.files()}
    for path in paths:
        if path.resolve() in files:
            raise ValueError(f"'{path}' is a file of the corpus. Choose another name to write to.")


def refuse_existing(paths: Sequence[Path]) -> None:
    found = [f"'{path}'" for path in paths if path.exists()]
    if found:
        raise ValueError(
            f"Already there: {', '.join(found)}. Give --resume to continue an interrupted job, or "
            f"remove them to start again."
        )


def read_description(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Read what an earlier process has noted, empty if there was none.

    Raises:
        ValueError: it is damaged, or had other settings.
    """
    if not path.exists():
        return {}
    state = read_json(path)
    before = state.get("settings")
    counts = [type(state[name]) for name in Summary._fields if name in state]
    if not isinstance(before, dict) or counts not in ([], [int, int]):
        raise ValueError(
            f"'{path}' is damaged. Remove it and what else the job has written, and start again."
        )
    now = json.loads(json.dumps(settings))
    differing = [name for name in now if before.get(name) != now[name]]
    if differing:
        changes = ", ".join(f"{name} = {before.get(name)!r}" for name in differing)
        raise ValueError(
            f"Cannot resume: the job described in '{path}' has {changes}. Give it the same "
            f"settings, corpus and weights, or remove it and what else the job has written."
        )
    return state


def encode_parts(
    corpus: RowFiles, directory: Path, encoder: Encoder, n_process: int, quiet: bool
) -> list[Summary]:
    """Encode the parts that are not in a directory yet; the sizes of all parts."""
    sizes = [measure(path) for path in directory.glob("*.npz")]
    done = sum(size.n_vectors for size in sizes)
    tasks = (
        (chunk, path)
        for number, chunk in enumerate(corpus.chunks(CHUNK_TOKENS))
        if not (path := directory / f"{number:08d}.npz").exists()
    )
    with ProgressBar(encoder.level, done=done, quiet=quiet) as progress:
        for size in work(encoder, tasks, n_process):
            sizes.append(size)
            progress.update(size.n_vectors)
    return sizes


def measure(path: Path) -> Summary:
    """The size of a finished part."""
    tokens = Block.load(path, with_vectors=False).tokens
    return Summary(len(tokens), sum(map(len, tokens)))


def work(
    encoder: Encoder, tasks: Iterator[tuple[Chunk, Path]], n_process: int
) -> Iterator[Summary]:
    """Encode chunks, in this process or in others, and yield the size of each."""
    loaded.cache_clear()  # of an earlier job, whose weights may have changed on the disk since
    encoder = loaded(encoder)
    if n_process == 1:
        for chunk, path in tasks:
            yield encode_part(encoder, chunk, path)
        return
    yield from map_in_processes(encode_part, ((encoder, *task) for task in tasks), n_process)


def encode_part(encoder: Encoder, chunk: Chunk, path: Path) -> Summary:
    """Encode a chunk and write it, whole or not at all."""
    block = loaded(encoder).encode(*chunk)
    block.save(path)
    return Summary(len(block.ids), sum(map(len, block.tokens)))


@lru_cache(maxsize=1)
def loaded(encoder: Encoder) -> Encoder:
    """The first encoder with these settings: others, as they come out of a queue, are not loaded.

    A forked process has it from its parent, whose memory it shares.
    """
    return encoder
