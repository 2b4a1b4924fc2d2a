"""What a run begins with: the words it predicts, and the card of the biLM it goes on from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...bilm.find import find_weights
from ...bilm.layout import VOCAB, Card, Weights
from ...lm.head import load_head
from ...lm.vocabulary import SPECIALS, Vocabulary
from ..config import PretrainConfig
from ..data.stats import CorpusStats

Say = Callable[[str], None]


def first_vocabulary(
    config: PretrainConfig, train: CorpusStats, say: Say
) -> tuple[Vocabulary, bool]:
    """The vocabulary of a new run, and whether its head is new too.

    Args:
        config: all settings.
        train: what is in the training text.
        say: told why a head is new that could have been another's.

    Raises:
        ValueError: a vocabulary or head cannot be read, or there would be no words.
    """
    start = config.paths.weights
    if start is None or not find_weights(start).has_head():
        if start is not None:
            say(f"'{start}' has no head: a new one learns first")
        return _new_vocabulary(config, train), True
    _, of_head = load_head(start)
    given = None if config.paths.vocab is None else Vocabulary.read(Path(config.paths.vocab))
    if given is None or given.words == of_head.words:
        return of_head, False
    say(
        f"[paths] vocab has not the words of the head of '{start}', in their order: a new one "
        f"learns first"
    )
    return given, True


def _new_vocabulary(config: PretrainConfig, train: CorpusStats) -> Vocabulary:
    """The vocabulary given, or that of the training text."""
    if config.paths.vocab is not None:
        return Vocabulary.read(Path(config.paths.vocab))
    vocab = Vocabulary.from_counts(train.counts, config.vocab.max_size, config.vocab.min_count)
    if len(vocab) == len(SPECIALS):
        raise ValueError(
            f"No word of the training text occurs [vocab] min_count ({config.vocab.min_count}) "
            f"times; lower it, or give more text."
        )
    return vocab


def vocabulary_of_run(config: PretrainConfig, out: Path) -> Vocabulary:
    """That of a run to be resumed.

    Raises:
        ValueError: it cannot be read, or [paths] vocab is another one.
    """
    vocab = Vocabulary.read(out / VOCAB)
    if config.paths.vocab is not None:
        given = Vocabulary.read(Path(config.paths.vocab))
        if given.words != vocab.words:
            raise ValueError(
                f"Cannot resume: the words of [paths] vocab, '{config.paths.vocab}', are not "
                f"those that the run was started with, '{out / VOCAB}'."
            )
    return vocab


def card_after(start: Weights, of_text: dict[str, str], say: Say) -> Card:
    """What is to be said of a biLM that goes on from another: its language, licence, sources."""
    before = start.card()
    lang, of_start = of_text.get("lang"), before.meta.get("lang")
    if lang and of_start and lang != of_start:
        say(f"The training text is of the language '{lang}', but '{start.where}' of '{of_start}'")
    kept = ("license", "sources", "lang", "tokenizer")
    meta = {name: before.meta[name] for name in kept if name in before.meta}
    if "name" in before.meta:
        meta["started_from"] = before.meta["name"]
    if lang:
        meta.pop("tokenizer", None)
    meta.update(of_text)
    # Its README tells of that biLM alone.
    documents = {name: text for name, text in before.documents.items() if name != "README.md"}
    return Card(meta, documents)
