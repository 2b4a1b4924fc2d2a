"""``python -m spacy elmo convert``: weights from one layout to the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from wasabi import msg

if TYPE_CHECKING:
    from ..bilm.layout import Weights
    from ..bilm.model import BiLM

LAYOUTS = ("own", "published")


def convert_cli(
    # fmt: off
    paths: list[Path] = typer.Argument(
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
        dir_okay=False,
    ),
    lang: str | None = typer.Option(
        None, "--lang", "-l", help="Language of the biLM, noted in its card"
    ),
    vocab: Path | None = typer.Option(
        None,
        "--vocab",
        help="Words of a published softmax, one a line, if they are not in a vocab.txt beside it",
        dir_okay=False,
    ),
    half: bool = typer.Option(
        False, "--half", help="Round the weights to half precision (own layout only)"
    ),
    no_head: bool = typer.Option(
        False, "--no-head", help="Leave out the language model's softmax and its words"
    ),
    force: bool = typer.Option(False, "--force", "-F", help="Replace what is at OUT"),
    # fmt: on
) -> None:
    """
    Convert weights between the published layout (options.json and HDF5) and our own.

    Published weights get their warm state, the one that every sentence starts from, by reading
    a passage of English; for another language give --warm-text. Our own biLMs become files that
    the archived implementations read.
    """
    from ..bilm.find import find_weights

    *sources, out = paths
    try:
        if not sources:
            raise ValueError("Give what to convert, and last what to write: IN... OUT.")
        given = [str(source) for source in sources]
        weights = find_weights(given if len(given) > 1 else given[0])
        target = _target(to, weights.layout, out, half, warm_text)
        if out.exists() and not force:
            raise ValueError(f"'{out}' exists already; give --force to replace it.")
        _give_words(weights, vocab)
        model = weights.load()
        if target == "own":
            _warm_up(model, weights, warm_text, lang)
        _write(model, weights, out, target, lang, half, no_head)
    except (ValueError, OSError, ImportError) as error:  # some languages need other packages
        msg.fail("Cannot convert", str(error), exits=1)
    n_parameters = sum(p.numel() for p in model.parameters())
    msg.good(f"Wrote {n_parameters / 1e6:.1f} M parameters in the {target} layout", str(out))


def _target(to: str | None, found: str, out: Path, half: bool, warm_text: Path | None) -> str:
    """The layout to write."""
    target = to or next(layout for layout in LAYOUTS if layout != found)
    if target not in LAYOUTS:
        raise ValueError(f"--to is '{target}'; give 'own' or 'published'.")
    if out.suffix == ".zip" or out.is_file():
        raise ValueError(f"'{out}' is no directory; weights are written to one.")
    if target == "published":
        if warm_text is not None:
            raise ValueError("The published layout has no place for a warm state: no --warm-text.")
        if half:
            raise ValueError("The published layout is written in single precision: no --half.")
    return target


def _give_words(weights: Weights, vocab: Path | None) -> None:
    """Put a vocabulary to a published softmax that comes without."""
    from ..bilm.published import PublishedWeights

    if isinstance(weights, PublishedWeights):
        weights.vocab = vocab or weights.vocab
        if weights.vocab is None and weights.has_softmax():
            msg.warn("The softmax is left out: its words are not known. Give them with --vocab.")
    elif vocab is not None:
        raise ValueError("--vocab is for published weights only.")


def _warm_up(model: BiLM, weights: Weights, text: Path | None, lang: str | None) -> None:
    """Have the biLM read for its warm state, if it wants one."""
    from ..bilm.warm import N_STREAMS, warm_state

    if text is not None:
        import spacy

        from ..pipeline.segments import split_text
        from ..pretraining.shards import read_lines

        nlp = spacy.blank(lang or weights.card().meta.get("lang") or "xx")
        sentences = list(split_text(nlp, read_lines(text)))
        if len(sentences) < N_STREAMS:
            raise ValueError(
                f"'{text}' has {len(sentences)} sentences; a warm state needs {N_STREAMS} at "
                f"least, and some 30 to be a good one."
            )
        model.config = replace(model.config, initial_state="warm")
        model.set_warm_state(warm_state(model, sentences))
    elif model.config.initial_state == "warm" and not weights.has_warm_state():
        model.warm_state()
        if lang not in (None, "en"):
            msg.warn(
                f"The warm state comes from reading English. Give --warm-text with some 30 "
                f"sentences of '{lang}'."
            )


def _write(
    model: BiLM,
    weights: Weights,
    out: Path,
    target: str,
    lang: str | None,
    half: bool,
    no_head: bool,
) -> None:
    from ..bilm.published import write_published
    from ..bilm.weights import new_directory, save_bilm, save_card
    from ..pretraining.head import load_head, save_head

    card = weights.card()
    if lang:
        card.meta["lang"] = lang
    head = None if no_head or not weights.has_head() else load_head(weights)
    with new_directory(out) as directory:
        save_card(card, directory)
        if target == "published":
            write_published(model, directory, *(head or ()))
            return
        save_bilm(model, directory, half=half)
        if head is not None:
            save_head(*head, directory, half=half)
