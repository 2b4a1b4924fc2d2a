"""The directory that a command writes: a new one, or one of its own to replace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def split_paths(paths: list[str]) -> tuple[str | list[str], Path]:
    """The ``weights`` setting and the output path among a command's arguments.

    Raises:
        ValueError: there are too few.
    """
    *sources, out = paths
    if not sources:
        raise ValueError("Give the weights, then the directory to write: IN... OUT.")
    return sources[0] if len(sources) == 1 else sources, Path(out)


def output_directory(out: Path, force: bool, foreign: Callable[[set[str]], set[str]]) -> Path:
    """Check that a directory may be written: at a new path, or in place of one of ours.

    Args:
        out: the path as given.
        force: replace an existing directory.
        foreign: given the names in it (directories end in ``/``), those that the command did not
            write; such a directory is never replaced.

    Returns:
        The path with links resolved.

    Raises:
        ValueError: something would be lost.
    """
    path, here = out.resolve(), Path.cwd().resolve()
    if path in (here, *here.parents):
        raise ValueError(
            f"'{out}' is the working directory or a parent of it, which is not replaced. Choose a "
            f"new directory."
        )
    existing = next(p for p in (path, *path.parents) if p.exists())
    if not existing.is_dir():
        raise ValueError(f"'{existing}' is not a directory; weights are written to one.")
    if existing != path:
        return path
    if not force:
        raise ValueError(f"'{out}' already exists. Use --force to replace it.")
    unknown = sorted(foreign({file.name + "/" * file.is_dir() for file in path.iterdir()}))
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise ValueError(
            f"'{out}' is not replaced, because this command did not write all of it: "
            f"{', '.join(unknown[:3])}{more}. Move these files, or choose a new directory."
        )
    return path
