"""What ``convert`` and ``package`` share: read weights with all that belongs to them, write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wasabi import msg

if TYPE_CHECKING:
    from spacy.language import Language

    from ..bilm.model import BiLM
    from ..lm.softmax import SoftmaxHead
    from ..lm.vocabulary import Vocabulary
    from ..weights.layout import Card, Weights
    from ..weights.statistics import Statistics

MAX_EXTRA = 2**28  # bytes of a file that is copied


@dataclass
class Contents:
    """What is written.

    Attributes:
        weights: where it comes from.
        model: the biLM.
        card: its card.
        head: the head and its vocabulary, None to leave them out.
        statistics: of its layers and words, None if there are none.
    """

    weights: Weights
    model: BiLM
    card: Card
    head: tuple[SoftmaxHead, Vocabulary] | None
    statistics: Statistics | None


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
    """Where a directory may be written: a new path, or that of a directory of ours to replace.

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


def read_contents(
    weights: Weights, lang: str | None, vocab: Path | None, no_head: bool
) -> Contents:
    """Read everything to write.

    Args:
        weights: where to read from.
        lang: language of the biLM, for the card.
        vocab: vocabulary of a published head.
        no_head: leave the head out.

    Raises:
        ValueError: a file is damaged, or the settings do not fit the weights.
    """
    from ..lm.head import load_head
    from ..weights.published.weights import PublishedWeights

    if vocab is not None:
        if no_head:
            raise ValueError("--vocab is for the head, which --no-head leaves out. Drop one.")
        if not isinstance(weights, PublishedWeights):
            raise ValueError("--vocab is for published weights only; ours include a vocabulary.")
        if not weights.has_softmax():
            raise ValueError(
                f"--vocab is for the head, but '{weights.where}' has none (no softmax/W and "
                f"softmax/b). Drop --vocab."
            )
        weights.vocab = vocab
    elif isinstance(weights, PublishedWeights) and not no_head:
        if weights.vocab is None and weights.has_softmax():
            msg.warn(
                "The head (the softmax layer that predicts words) is left out, because its "
                "vocabulary is unknown. Give it with --vocab."
            )
    card = weights.card()
    if lang:
        card.meta["lang"] = lang
    head = None if no_head or not weights.has_head() else load_head(weights)
    return Contents(weights, weights.load(), card, head, weights.statistics())


def add_statistics(contents: Contents, text: Path | None) -> None:
    """Compute the statistics of a biLM, whose warm state must be set.

    Args:
        contents: gets them; the card names the language of the text.
        text: to compute them from; None to leave those that are there, if any.

    Raises:
        ValueError: the text has no two distinct words.
    """
    from ..bilm.sentence_batches import IndexedSentences
    from ..weights.statistics import compute_statistics

    if text is not None:
        sentences = IndexedSentences(_read_text(text, contents), max_words=100)
        contents.statistics = compute_statistics(contents.model, sentences)


def _read_text(text: Path, contents: Contents) -> list[list[str]]:
    """The sentences of a text, tokenized by the tokenizer of the card, or of its language."""
    from ..text.segments import split_text
    from ..text.shards import read_lines

    meta = contents.card.meta
    nlp = _blank(str(meta.get("lang") or "xx"), meta.get("tokenizer"))
    return list(split_text(nlp, read_lines(text)))


def add_warm_state(contents: Contents, text: Path | None) -> None:
    """Compute a biLM's warm state, if it needs one.

    Args:
        contents: whose biLM is changed; the card names the language of the text.
        text: to compute it from; None for the package's English passage.

    Raises:
        ValueError: the text is too short, or the biLM starts from a zero state.
    """
    from ..bilm.warm_state import N_STREAMS, compute_warm_state

    model, lang = contents.model, str(contents.card.meta.get("lang") or "")
    needs_one = model.config.initial_state == "warm"
    if text is not None:
        if not needs_one:
            raise ValueError(
                "--warm-text is for biLMs whose state was carried from sentence to sentence in "
                "training. This one was trained from a zero state (initial_state is 'zero'), and a "
                "warm state would make its vectors worse. Drop --warm-text."
            )
        sentences = _read_text(text, contents)
        if len(sentences) < N_STREAMS:
            raise ValueError(
                f"'{text}' has {len(sentences)} sentences; a warm state needs at least "
                f"{N_STREAMS}, better 30."
            )
        model.set_warm_state(compute_warm_state(model, sentences))
    elif needs_one and not contents.weights.has_warm_state():
        model.warm_state()
        if not lang:
            msg.info(
                "The warm state, from which every sentence starts, was computed from English text. "
                "For a biLM of another language give --warm-text and --lang."
            )
        elif lang.lower().replace("_", "-").split("-")[0] not in ("en", "eng"):
            msg.warn(
                f"The warm state was computed from English text. Give --warm-text with some 30 "
                f"sentences in the language '{lang}'."
            )


def _blank(lang: str, tokenizer: str | None) -> Language:
    """A blank pipeline of a language, of the multi-language class if spaCy does not support it."""
    from spacy.util import get_lang_class

    from ..text.readers import blank

    try:
        get_lang_class(lang)
    except ImportError:
        msg.warn(
            f"spaCy does not support the language '{lang}': the text is tokenized as "
            f"multi-language ('xx'). If spaCy uses another code for it (Norwegian is 'nb'), give "
            f"that with --lang."
        )
        lang = "xx"
    return blank(lang, tokenizer)


def write_contents(
    contents: Contents, directory: Path, layout: str = "own", half: bool = False
) -> None:
    """Write a biLM with its card, its head and the other files that belong to it.

    Args:
        contents: what to write.
        directory: an existing one.
        layout: ``"own"`` or ``"published"``.
        half: store the weights in half precision (own layout only).
    """
    from ..lm.head import save_head
    from ..util.files import read_whole, reading
    from ..weights.native import save_bilm, save_statistics
    from ..weights.published.weights import write_published

    for file in contents.weights.extra_files():  # such as lists of sources, for attribution
        with reading("the file", file), file.open("rb") as opened:
            data = read_whole(opened, MAX_EXTRA)
        (directory / file.name).write_bytes(data)
    contents.card.save(directory)
    if contents.statistics is not None:
        save_statistics(contents.statistics, directory)
    if layout == "own":
        save_bilm(contents.model, directory, half=half)
        if contents.head is not None:
            save_head(*contents.head, directory, half=half)
    else:
        head, vocab = contents.head or (None, None)
        write_published(contents.model, directory, head, vocab.words if vocab else ())
