"""Pipelines saved whole or not at all."""

from __future__ import annotations

from pathlib import Path

from spacy.language import Language

from ..util.files import atomic_directory, read_json
from ..weights.layout import META

OWN_FILES = {"config.cfg", META, "tokenizer", "vocab"}  # of `nlp.to_disk`, beside its components


def save_pipeline(nlp: Language, path: str | Path) -> None:
    """Save a pipeline as `nlp.to_disk` does, but whole or not at all.

    spaCy writes in place: a process that is killed meanwhile, or a full disk, leaves half a
    pipeline, even over a good one. Here the directory gets its name when all of it is written.

    Args:
        nlp: the pipeline.
        path: of the directory; an existing one is replaced if it is empty or a saved pipeline.

    Raises:
        ValueError: the directory has other files, which would be lost.
        OSError: it cannot be written; an existing one stays as it was.
    """
    path = Path(path)
    if path.is_dir() and (found := {file.name for file in path.iterdir()}):
        components = read_json(path / META).get("components", []) if META in found else []
        foreign = sorted(found - OWN_FILES - set(map(str, components)))
        if foreign:
            raise ValueError(
                f"'{path}' is not replaced, because it has files that are not of a saved pipeline: "
                f"{', '.join(foreign[:3])}. Move them, or choose a new directory."
            )
    with atomic_directory(path) as temporary:
        nlp.to_disk(temporary)
