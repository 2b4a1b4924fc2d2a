"""``python -m spacy elmo convert``: weights from one layout to the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from wasabi import msg

from .exchange import free_place, read_contents, sources_and_target, warm_up, write_contents

if TYPE_CHECKING:
    from ..bilm.layout import Weights

LAYOUTS = ("own", "published")


def convert_cli(
    # fmt: off
    paths: list[str] = typer.Argument(
        ...,
        help="Name, directory or zip of weights, or two files (options.json and HDF5), and last the directory to write",
        metavar="IN... OUT",
    ),
    to: str | None = typer.Option(
        None,
        "--to",
        "-t",
        help="Layout to write: own or published; by default the one that IN has not",
    ),
    warm_text: Path | None = typer.Option(
        None,
        "--warm-text",
        "-w",
        help="Text of the biLM's language, some 30 sentences or more, to be read for its warm state",
        exists=True,
        dir_okay=False,
    ),
    lang: str | None = typer.Option(
        None, "--lang", "-l", help="Language of the biLM as spaCy has it (nb), noted in its card"
    ),
    vocab: Path | None = typer.Option(
        None,
        "--vocab",
        help="Words of a published head, one a line, if they are not in a vocab.txt beside it",
        exists=True,
        dir_okay=False,
    ),
    half: bool = typer.Option(
        False, "--half", help="Round the weights to half precision (own layout only)"
    ),
    no_head: bool = typer.Option(
        False,
        "--no-head",
        help="Leave out the head (the softmax layer that predicts words) and its words",
    ),
    force: bool = typer.Option(
        False,
        "--force",
        "-F",
        help="Replace the weights at OUT; a directory of anything else stays",
    ),
    # fmt: on
) -> None:
    """
    Convert weights between the published layout (options.json and HDF5) and our own.

    Published weights get their warm state, the one that every sentence starts from, by reading
    a passage of English; for another language give --warm-text. Our own biLMs become files that
    the archived implementations read.
    """
    from ..bilm.files import atomic_directory
    from ..bilm.find import find_weights

    try:
        setting, out = sources_and_target(paths)
        weights = find_weights(setting)
        target = _target(to, weights, half, warm_text)
        if out.suffix == ".zip":
            raise ValueError(f"'{out}' is no directory; weights are written to one.")
        place = free_place(out, force, lambda found: _strangers(found, weights))
        contents = read_contents(weights, lang=lang, vocab=vocab, no_head=no_head)
        if target == "own":
            warm_up(contents, warm_text)
        elif weights.has_warm_state():
            msg.warn(
                "The stored warm state is left out: the published layout has no place for it. "
                "Whoever reads the files makes one anew, from another text perhaps."
            )
        with atomic_directory(place) as directory:
            write_contents(contents, directory, target, half)
    except (ValueError, OSError, ImportError) as error:  # some languages need other packages
        msg.fail("Cannot convert", str(error), exits=1)
    n_parameters = sum(p.numel() for p in contents.model.parameters())
    msg.good(f"Wrote {n_parameters / 1e6:.1f} M parameters in the {target} layout", str(out))


def _target(to: str | None, weights: Weights, half: bool, warm_text: Path | None) -> str:
    """The layout to write."""
    target = to or next(layout for layout in LAYOUTS if layout != weights.layout)
    if target not in LAYOUTS:
        raise ValueError(f"--to is '{target}'; give 'own' or 'published'.")
    if target == "published":
        weights.config().to_options()  # not every biLM has a place in that layout
        if warm_text is not None:
            raise ValueError("The published layout has no place for a warm state: no --warm-text.")
        if half:
            raise ValueError("The published layout is written in single precision: no --half.")
    return target


def _strangers(place: Path, weights: Weights) -> list[str]:
    """What a directory holds beside weights as they are written here; all of it if it holds none.

    Files of the same names as those beside the weights that are read will be there again.
    """
    from ..bilm import published
    from ..bilm import weights as own

    names = {file.name for file in place.iterdir()}
    kinds = ({own.CONFIG, own.WEIGHTS}, {published.OPTIONS, published.MODEL})
    if not any(kind <= names for kind in kinds):
        return sorted(names)
    known = {*own.FILES, *published.FILES, *(file.name for file in weights.others())}
    return sorted(file.name for file in place.iterdir() if file.is_dir() or file.name not in known)
