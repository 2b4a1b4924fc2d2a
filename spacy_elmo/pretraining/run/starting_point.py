"""What a run starts with: its vocabulary, and the card of the biLM that it starts from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...lm.head import special_first
from ...lm.vocabulary import SPECIALS, Vocabulary
from ...weights.layout import VOCAB, Card, Weights
from ..config import PretrainConfig
from ..data.stats import CorpusStats

Notify = Callable[[str], None]


def starting_vocabulary(
    config: PretrainConfig, stats: CorpusStats, notify: Notify
) -> tuple[Vocabulary, bool]:
    """The vocabulary of a new run, and whether its head is newly initialized.

    Args:
        config: all settings.
        stats: of the training text.
        notify: prints why the head is new although the run starts from a biLM.

    Raises:
        ValueError: a vocabulary cannot be read, or it would be empty.
    """
    start = config.start
    path = config.paths.vocab
    given = None if path is None else Vocabulary.read(Path(path))
    if start is not None and start.has_head():
        words = start.words()
        order = special_first(words)
        vocab = Vocabulary(words if order is None else [words[i] for i in order])
        if given is None or given.words == vocab.words:
            return vocab, False
        notify(f"[paths] vocab differs from the vocabulary of '{start.where}': the head is new")
    elif start is not None:
        notify(f"'{start.where}' has no head: a new one is trained first")
    if given is None:
        settings = config.vocab
        given = Vocabulary.from_counts(stats.counts, settings.max_size, settings.min_count)
        if len(given) == len(SPECIALS):
            raise ValueError(
                f"No word of the training text occurs [vocab] min_count ({settings.min_count}) "
                f"times; lower it, or give more text."
            )
    elif len(given) == len(SPECIALS):
        raise ValueError(f"[paths] vocab, '{path}', has no words besides {', '.join(SPECIALS)}.")
    return given, True


def resumed_vocabulary(config: PretrainConfig, out: Path) -> Vocabulary:
    """That of a run to resume.

    Raises:
        ValueError: it cannot be read, or [paths] vocab is another one.
    """
    vocab = Vocabulary.read(out / VOCAB)
    path = config.paths.vocab
    if path is not None and Vocabulary.read(Path(path)).words != vocab.words:
        raise ValueError(
            f"Cannot resume: the words of [paths] vocab, '{path}', differ from those that the run "
            f"was started with, '{out / VOCAB}'."
        )
    return vocab


def starting_card(start: Weights, text: dict[str, str], notify: Notify) -> Card:
    """The card of a biLM that starts from another: its language, licence and sources.

    Args:
        start: the weights to start from.
        text: the card of the training text.
        notify: prints that their languages differ.
    """
    card = start.card()
    lang, start_lang = text.get("lang"), card.meta.get("lang")
    if lang and start_lang and lang != start_lang:
        notify(
            f"The training text has the language '{lang}', but '{start.where}' has '{start_lang}'"
        )
    inherited = ("license", "sources", "lang", "tokenizer")
    meta = {name: card.meta[name] for name in inherited if name in card.meta}
    if "name" in card.meta:
        meta["started_from"] = card.meta["name"]
    if lang:
        meta.pop("tokenizer", None)
    # Its README describes that biLM alone.
    documents = {name: text for name, text in card.documents.items() if name != "README.md"}
    return Card({**meta, **text}, documents)
