"""What ``convert`` and ``package`` share: weights come in, and are written anew with all theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wasabi import msg

if TYPE_CHECKING:
    from spacy.language import Language

    from ..bilm.layout import Card, Weights
    from ..bilm.model import BiLM
    from ..lm.softmax import SoftmaxHead
    from ..lm.vocabulary import Vocabulary


@dataclass
class Contents:
    """What is written.

    Attributes:
        weights: where it comes from.
        model: the biLM.
        card: its card.
        head: the head and its words, if they are to be written.
    """

    weights: Weights
    model: BiLM
    card: Card
    head: tuple[SoftmaxHead, Vocabulary] | None


def sources_and_target(paths: list[str]) -> tuple[str | list[str], Path]:
    """A setting of weights, and what is to be written, from a command's arguments.

    Raises:
        ValueError: there are too few.
    """
    *sources, out = paths
    if not sources:
        raise ValueError("Give the weights, and last the directory to write: IN... OUT.")
    return sources[0] if len(sources) == 1 else sources, Path(out)


def free_place(out: Path, force: bool, strangers: Callable[[Path], list[str]]) -> Path:
    """Where a directory may be written: where none is, or where one may be replaced.

    Args:
        out: its path as it was given.
        force: replace the one that is there.
        strangers: the names in it that no command of ours wrote; they are never deleted.

    Returns:
        The path, links followed.

    Raises:
        ValueError: something would be lost that was not to be replaced.
    """
    place, here = out.resolve(), Path.cwd().resolve()
    if place in (here, *here.parents):
        raise ValueError(
            f"'{out}' is the working directory or one around it, and that is not replaced. Name a "
            f"new directory."
        )
    existing = next(path for path in (place, *place.parents) if path.exists())
    if not existing.is_dir():
        raise ValueError(f"'{existing}' is no directory; weights are written to one.")
    if existing != place:
        return place
    if not force:
        raise ValueError(f"'{out}' exists already; give --force to replace it.")
    strange = strangers(place)
    if strange:
        more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
        raise ValueError(
            f"'{out}' is not replaced, because it holds what no such command wrote: "
            f"{', '.join(strange[:3])}{more}. Move that away, or name a new directory."
        )
    return place


def read_contents(
    weights: Weights, *, lang: str | None, vocab: Path | None, no_head: bool
) -> Contents:
    """Read all that is to be written.

    Args:
        weights: where from.
        lang: language of the biLM, to be noted in the card.
        vocab: words of a published head.
        no_head: leave the head out.

    Raises:
        ValueError: something is damaged, or the settings do not fit the weights.
    """
    from ..bilm.published import PublishedWeights
    from ..lm.head import load_head

    if vocab is not None:
        if no_head:
            raise ValueError("--vocab names the words of the head, and --no-head leaves it out.")
        if not isinstance(weights, PublishedWeights):
            raise ValueError("--vocab is for published weights only; ours bring their words.")
        if not weights.has_softmax():
            raise ValueError(
                f"--vocab names the words of a head, but '{weights.where}' has none (no softmax/W "
                f"and softmax/b). Leave --vocab away."
            )
        weights.vocab = vocab
    elif isinstance(weights, PublishedWeights) and not no_head:
        if weights.vocab is None and weights.has_softmax():
            msg.warn(
                "The head (the softmax layer that predicts words) is left out, because its words "
                "are not known. Give them with --vocab."
            )
    card = weights.card()
    if lang:
        card.meta["lang"] = lang
    head = None if no_head or not weights.has_head() else load_head(weights)
    return Contents(weights, weights.load(), card, head)


def warm_up(contents: Contents, text: Path | None) -> None:
    """Have the biLM read for its warm state, if it wants one.

    Args:
        contents: the biLM is changed; the card's language is that of the text.
        text: what to read; the package's own passage if None.

    Raises:
        ValueError: the text is too short, or the biLM knows a state of zeros only.
    """
    from ..bilm.model import N_STREAMS, compute_warm_state

    model, lang = contents.model, str(contents.card.meta.get("lang") or "")
    wants_one = model.config.initial_state == "warm"
    if text is not None:
        from ..pipeline.segments import split_text
        from ..pretraining.data.shards import read_lines

        if not wants_one:
            raise ValueError(
                "--warm-text is for biLMs that were trained with a carried state. This one was "
                "trained from zeros (initial_state is 'zero'), and would get worse vectors from a "
                "state that it has never seen. Leave --warm-text away."
            )
        sentences = list(split_text(_tokenizer(lang), read_lines(text)))
        if len(sentences) < N_STREAMS:
            raise ValueError(
                f"'{text}' has {len(sentences)} sentences; a warm state needs {N_STREAMS} at "
                f"least, and some 30 to be a good one."
            )
        model.set_warm_state(compute_warm_state(model, sentences))
    elif wants_one and not contents.weights.has_warm_state():
        model.warm_state()
        if not lang:
            msg.info(
                "The warm state, which every sentence starts from, comes from reading English. For "
                "a biLM of another language give --warm-text and --lang."
            )
        elif re.split("[-_]", lang.lower())[0] not in ("en", "eng"):
            msg.warn(
                f"The warm state comes from reading English. Give --warm-text with some 30 "
                f"sentences of '{lang}'."
            )


def _tokenizer(lang: str) -> Language:
    """A blank pipeline of a language; of any language if spaCy lacks it."""
    import spacy
    from spacy.util import get_lang_class

    try:
        get_lang_class(lang or "xx")
    except ImportError:
        msg.warn(
            f"spaCy has no language '{lang}': the text is tokenised as that of any language "
            f"('xx'). If spaCy knows it by another code (Norwegian is 'nb'), give that as --lang."
        )
        lang = "xx"
    return spacy.blank(lang or "xx")


def write_contents(
    contents: Contents, directory: Path, layout: str = "own", half: bool = False
) -> None:
    """Write a biLM with its card, its head, and the files that lay beside it.

    Args:
        contents: what to write.
        directory: where to; it exists.
        layout: ``"own"`` or ``"published"``.
        half: round the numbers to half precision (own layout only).
    """
    from ..bilm.layout import readable
    from ..bilm.published import write_published
    from ..bilm.weights import save_bilm, save_card
    from ..lm.head import save_head

    for file in contents.weights.others():  # lists of sources: attribution stays with the weights
        with readable(file):
            data = file.read_bytes()
        (directory / file.name).write_bytes(data)
    save_card(contents.card, directory)
    if layout == "own":
        save_bilm(contents.model, directory, half=half)
        if contents.head is not None:
            save_head(*contents.head, directory, half=half)
    elif contents.head is None:
        write_published(contents.model, directory)
    else:
        head, vocab = contents.head
        write_published(contents.model, directory, head, vocab.words)
