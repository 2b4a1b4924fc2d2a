"""Encodes a corpus in parts, from which a killed job resumes, in several processes or on Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from ..about import __version__
from ..text.readers import memory_zone
from ..util.files import locked, read_json, write_json
from ..util.progress import ProgressBar
from ..util.workers import map_in_processes
from . import formats
from .encoder import Encoder
from .on_ray import map_on_ray
from .row_files import Chunk, RowFiles
from .rows import text_of

CHUNK_TOKENS = 16384  # in a part
# Files in the directory of parts. Readers of Parquet skip names that begin with a dot.
PARTS, LOCK, JOB = "part-*.parquet", ".lock", ".job.json"


class Summary(NamedTuple):
    """The size of an output.

    Attributes:
        n_rows: the number of lines, sentences or Docs.
        n_vectors: the number of vectors of all rows together.
    """

    n_rows: int
    n_vectors: int


def encode(
    corpus: str | Path,
    out: str | Path,
    *,
    tokenized: bool = False,
    column: str | None = None,
    n_process: int = 1,
    ray: str | None = None,
    resume: bool = False,
    force: bool = False,
    quiet: bool = True,
    **settings: Any,
) -> Summary:
    """Write the vectors of a corpus: a row for each line, sentence or Doc, in order.

    Each process computes on one thread. The result is the same to the last bit, whatever the number
    of processes, and however often the job was killed and resumed. Finished parts are in
    ``OUT.parts``. When all parts are there, they become OUT; until then, an older OUT stays.
    ``OUT.json`` describes the job.

    Args:
        corpus: a file or directory: plain text, JSONL, CSV, TSV, Parquet, ``.spacy`` or shards.
        out: ``….parquet``, a directory of Parquet files, or ``….npy``.
        tokenized: lines of plain text are words with spaces between them.
        column: the column of texts in JSONL, CSV, TSV or Parquet; None for ``"text"``.
        n_process: the number of processes, or of tasks at a time on Ray.
        ray: the address of a Ray cluster whose machines share the storage; ``"local"`` starts one.
        resume: continue an interrupted job, if there is one.
        force: encode again, and replace the output of an earlier job.
        quiet: show no progress.
        settings: the settings of an `Encoder`: ``weights``, ``pipeline``, …

    Raises:
        ValueError: a setting is unknown or does not fit the others; the corpus, the weights or a
            library is missing; or ``out`` is not the output of a job.
    """
    out = Path(os.path.abspath(out))  # a cluster's machines have other working directories
    if out.suffix == formats.PARQUET:
        out = Path(os.path.realpath(out))  # a directory cannot take the place of a link
    encoder, files = Encoder(**settings), RowFiles(str(corpus), tokenized, column)
    formats.check_output(out)
    description, parts = Path(f"{out}.json"), Path(f"{out}.parts")
    for path in (*formats.output_files(out), description, parts):
        if files.includes(path):
            raise ValueError(
                f"'{path}' would be a part of the corpus '{corpus}', which it is written from. "
                f"Choose a name elsewhere."
            )
    job = {**asdict(encoder), "tokenized": tokenized, "column": column}
    job |= {"corpus": files.fingerprint(), "checksum": encoder.checksum(), "version": __version__}
    with lock_parts(parts, out):
        summary = find_job(out, description, parts, job, resume, force)
        if summary is None:
            write_json(parts / JOB, {"settings": job})
            summary = encode_parts(files, parts, encoder, n_process, ray, quiet)
            write_json(description, {"settings": job, **summary._asdict()})
            join_parts(parts, out, encoder, summary)
        remove_parts(parts)
    return summary


@contextmanager
def lock_parts(path: Path, out: Path) -> Iterator[None]:
    """Lock the directory of parts. It is created, and removed if no part is left in it: the job is
    done, or has failed before its first part.

    Args:
        path: the directory.
        out: the output of the job, for errors.

    Raises:
        ValueError: another job has locked it.
    """
    path.mkdir(parents=True, exist_ok=True)
    (path / LOCK).touch()
    with locked(path / LOCK, wait=False) as is_locked:
        if is_locked is False:
            raise ValueError(f"Another process is writing '{out}'. Wait until it has ended.")
        try:
            yield
        finally:
            if not any(path.glob(PARTS)):
                for name in (JOB, LOCK):
                    (path / name).unlink(missing_ok=True)
                with suppress(OSError):  # something else is there, or the directory is the output
                    path.rmdir()


def remove_parts(directory: Path) -> None:
    """Remove the parts in a directory, and nothing else."""
    for path in directory.glob(PARTS):
        path.unlink()


def find_job(
    out: Path, description: Path, parts: Path, job: dict[str, Any], resume: bool, force: bool
) -> Summary | None:
    """Find an earlier job with this output. If the new job is forced, its parts are removed.

    Args:
        out: the output.
        description: the file that describes a finished job.
        parts: the directory of its parts, which describes an unfinished one.
        job: the settings of the new job.
        resume, force: see `encode`.

    Returns:
        The size of the finished output; None if there is something left to do.

    Raises:
        ValueError: something else is there, or the earlier job had other settings, or the user says
            neither to resume nor to force.
    """
    written = formats.output_files(out)
    source = parts / JOB if (parts / JOB).exists() else description
    state = read_json(source) if source.exists() else {}
    before = state.get("settings")
    is_finished = {*Summary._fields} < {*state} and all(path.exists() for path in written)
    if is_finished and before == job and resume and not force:
        return Summary(state["n_rows"], state["n_vectors"])
    others = [path for path in out.glob("*") if not path.match(PARTS)]
    if not isinstance(before, dict):
        others += [path for path in (*written, source, *parts.glob(PARTS)) if path.exists()]
    if others:
        raise ValueError(
            f"Already there: '{others[0]}', which is not the result of a job that '{description}' "
            f"describes. Choose another name to write to, or move it elsewhere."
        )
    if force or before is None:
        remove_parts(parts)
    elif not resume:
        how = "complete. Use" if is_finished else "not complete. Use --resume to complete it, or"
        raise ValueError(f"The output '{out}' of an earlier job is {how} --force to encode again.")
    elif before != job:
        differing = [name for name in {**job, **before} if before.get(name) != job.get(name)]
        changes = ", ".join(f"{name} = {before.get(name)!r}" for name in differing)
        raise ValueError(
            f"Cannot resume: the job described in '{source}' has {changes}. Give it the same "
            f"settings, corpus and weights, or --force to encode it again."
        )
    return None


def encode_parts(
    files: RowFiles, directory: Path, encoder: Encoder, n_process: int, ray: str | None, quiet: bool
) -> Summary:
    """Encode the parts that are missing in a directory; return the size of all parts."""
    sizes = [Summary(*formats.count_part(path, encoder.level)) for path in directory.glob(PARTS)]
    tasks = (
        (encoder, chunk, path)
        for number, chunk in enumerate(files.chunks(CHUNK_TOKENS))
        if not (path := directory / f"part-{number:08d}.parquet").exists()
    )
    shared_encoder.cache_clear()  # an earlier job's weights may have changed on the disk
    shared_encoder(encoder)
    results: Iterator[Summary] = starmap(encode_part, tasks)
    if ray is not None:
        results = map_on_ray(encode_part, tasks, ray, n_process)
    elif n_process > 1:
        results = map_in_processes(encode_part, tasks, n_process)
    done = sum(size.n_vectors for size in sizes)
    with ProgressBar(encoder.level, done=done, quiet=quiet) as progress:
        for size in results:
            sizes.append(size)
            progress.update(size.n_vectors)
    return Summary(*map(sum, zip(*sizes, strict=True)))


def encode_part(encoder: Encoder, chunk: Chunk, path: Path) -> Summary:
    """Encode a chunk and write it to a file, whole or not at all."""
    encoder = shared_encoder(encoder)
    encoder.elmo.bilm.model.word_cache.clear()  # so that earlier chunks change no bit
    with memory_zone(encoder.nlp, map(text_of, chunk.rows)):
        encoded = encoder.encode(chunk.rows)
    formats.write_part(encoded, chunk.ids, path)
    return Summary(len(chunk.ids), len(encoded.vectors))


@lru_cache(maxsize=1)
def shared_encoder(encoder: Encoder) -> Encoder:
    """Return the first encoder with these settings, because it has loaded its weights. A worker
    gets a copy with each task, and a forked process has the encoder of its parent."""
    return encoder


def join_parts(parts: Path, out: Path, encoder: Encoder, size: Summary) -> None:
    """Make the output from all parts."""
    if out.suffix == formats.NUMPY:
        shape = (size.n_vectors, *encoder.shape)
        formats.write_npy(out, sorted(parts.glob(PARTS)), encoder.level, shape, encoder.dtype)
        (parts / JOB).unlink()  # which says that the job is not finished
        return
    if out.exists():
        remove_parts(out)
        out.rmdir()  # an error if something else is in it
    for name in (JOB, LOCK):
        (parts / name).unlink()
    os.replace(parts, out)
