"""The directory that a command writes: a new one, or one that the command has written before."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path


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
