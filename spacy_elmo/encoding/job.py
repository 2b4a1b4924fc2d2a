"""Encodes a corpus in parts, in one process or several, and joins them: a killed job can resume."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import starmap
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
    format: str | None = None,
    tokenized: bool = False,
    n_process: int = 1,
    resume: bool = False,
    ray: str | None = None,
    quiet: bool = True,
    **settings: Any,
) -> Summary:
    """Write the vectors of a corpus to a file, one row for each line or Doc, in order.

    Each process computes on one thread. The result is the same to the last bit, whatever the number
    of processes, and however often the job was killed and resumed. While it runs, finished parts
    are in a directory beside the file (``OUT.parts``); a description with all settings stays
    (``OUT.json``).

    Args:
        corpus, tokenized: see `RowFiles`.
        out: the file to write. With ``ray`` a directory, on storage that all machines share.
        weights, pipeline, settings: see `Encoder`, all of whose settings but ``docs`` can be given.
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
        str(weights),
        pipeline if pipeline is None else str(pipeline),
        docs=format == "docbin",
        **settings,
    )
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
    files, description, parts = output_files(format, out), Path(f"{out}.json"), Path(f"{out}.parts")
    refuse_corpus(read, files)
    found = ", ".join(f"'{path}'" for path in (*files, description, parts) if path.exists())
    if found and not (resume and description.exists()):
        raise ValueError(
            f"Already there: {found}. Give --resume to continue the interrupted job that "
            f"'{description}' describes, or remove them to start again."
        )
    job = {
        **asdict(encoder),
        "format": format,
        "tokenized": tokenized,
        "corpus": read.fingerprint(),
        "checksum": encoder.checksum(),
        "version": __version__,
    }
    state = read_description(description, job)
    if "n_rows" not in state or not all(map(Path.exists, files)):
        description.parent.mkdir(parents=True, exist_ok=True)
        write_json(description, {"settings": job})  # before any part: no part is without it
        parts.mkdir(exist_ok=True)
        try:
            summary = encode_parts(read, parts, encoder, n_process, quiet)
        except BaseException:
            if not any(parts.glob("*.npz")):  # nothing to resume
                shutil.rmtree(parts)
                description.unlink()
            raise
        WRITERS[format](out, sorted(parts.glob("*.npz")))
        state = summary._asdict()
        write_json(description, {"settings": job, **state})
    shutil.rmtree(parts, ignore_errors=True)
    return Summary(state["n_rows"], state["n_vectors"])


def refuse_corpus(corpus: RowFiles, paths: Sequence[Path]) -> None:
    """Raise a ValueError if a file to write is one of the corpus."""
    files = {file.resolve() for file in corpus.files()}
    for path in paths:
        if path.resolve() in files:
            raise ValueError(f"'{path}' is a file of the corpus. Choose another name to write to.")


def read_description(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Read what an earlier process has noted, empty if there was none.

    Raises:
        ValueError: it is damaged, or had other settings.
    """
    if not path.exists():
        return {}
    state, now = read_json(path), json.loads(json.dumps(settings))
    before = state.get("settings")
    if before != now:
        before = before if isinstance(before, dict) else {}
        differing = [name for name in now if before.get(name) != now[name]]
        changes = ", ".join(f"{name} = {before.get(name)!r}" for name in differing)
        raise ValueError(
            f"Cannot resume: the job described in '{path}' has {changes}. Give it the same "
            f"settings, corpus and weights, or remove it and what else the job has written."
        )
    return state


def encode_parts(
    corpus: RowFiles, directory: Path, encoder: Encoder, n_process: int, quiet: bool
) -> Summary:
    """Encode the parts that are not in a directory yet; the size of all of them."""
    sizes = [measure(Block.load(path, with_vectors=False)) for path in directory.glob("*.npz")]
    tasks = (
        (encoder, chunk, path)
        for number, chunk in enumerate(corpus.chunks(CHUNK_TOKENS))
        if not (path := directory / f"{number:08d}.npz").exists()
    )
    loaded.cache_clear()  # of an earlier job, whose weights may have changed on the disk since
    loaded(encoder)
    found: Iterator[Summary] = starmap(encode_part, tasks)
    if n_process > 1:
        found = map_in_processes(encode_part, tasks, n_process)
    done = sum(size.n_vectors for size in sizes)
    with ProgressBar(encoder.level, done=done, quiet=quiet) as progress:
        for size in found:
            sizes.append(size)
            progress.update(size.n_vectors)
    return Summary(*map(sum, zip(*sizes, strict=True)))


def measure(block: Block) -> Summary:
    """The size of a part."""
    return Summary(len(block.ids), sum(map(len, block.tokens)))


def encode_part(encoder: Encoder, chunk: Chunk, path: Path) -> Summary:
    """Encode a chunk and write it, whole or not at all."""
    block = loaded(encoder).encode(*chunk)
    block.save(path)
    return measure(block)


@lru_cache(maxsize=1)
def loaded(encoder: Encoder) -> Encoder:
    """The first encoder with these settings: others, as they come out of a queue, are not loaded.

    A forked process has it from its parent, whose memory it shares.
    """
    return encoder
