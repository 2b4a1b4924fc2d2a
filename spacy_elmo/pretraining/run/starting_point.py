"""The start of a run, perhaps from another's biLM, or its checkpoint to go on from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...lm.head import special_first
from ...lm.vocabulary import SPECIALS, Vocabulary
from ...util.files import WORKPLACE
from ...weights.layout import VOCAB, Card, Weights
from ..config import PretrainConfig
from ..data.stats import CorpusStats
from ..data.word_table import TABLE
from .checkpoint import CHECKPOINT, TrainingProgress, check_resumable, read_progress
from .distributed import LAUNCH
from .log import LOG

BEST, LAST = "model-best", "model-last"
Notify = Callable[[str], None]


def check_new(out: Path) -> None:
    """Raise a ValueError if a directory has what a new run would write over."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"'{out}' is a file; give a directory for the run.")
    if (out / CHECKPOINT).exists():
        raise ValueError(
            f"'{out}' has the checkpoint of another run; resume it with --resume, or choose "
            f"another directory."
        )
    found = [name for name in (BEST, LAST, VOCAB, TABLE, LOG) if (out / name).exists()]
    if found:
        raise ValueError(
            f"'{out}' has {', '.join(found)} already, but no checkpoint, and a run would "
            f"overwrite them; choose another directory."
        )


def ended_before_checkpoint(out: Path) -> bool:
    """Tell if a directory has a run that ended before it could write its checkpoint."""
    names = {path.name for path in out.iterdir()} if out.is_dir() else {CHECKPOINT}
    begun = not names.isdisjoint((VOCAB, LAUNCH)) or all(n.startswith(WORKPLACE) for n in names)
    later = (BEST, LAST, Path(CHECKPOINT).stem)
    return begun and not any(name.startswith(later) for name in names)


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
    start, path = config.start, config.paths.vocab
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
    empty = f"[paths] vocab, '{path}', has no words besides {', '.join(SPECIALS)}."
    if given is None:
        settings = config.vocab
        given = Vocabulary.from_counts(stats.counts, settings.max_size, settings.min_count)
        empty = (
            f"No word of the training text occurs [vocab] min_count ({settings.min_count}) times; "
            f"lower it, or give more text."
        )
    if len(given) == len(SPECIALS):
        raise ValueError(empty)
    return given, True


def starting_card(start: Weights | None, text: dict[str, str], notify: Notify) -> Card:
    """The card of a new biLM: its language, and the licence and sources of the one it starts from.

    Args:
        start: the weights to start from, if any.
        text: the card of the training text.
        notify: prints that their languages differ.
    """
    if start is None:
        return Card(dict(text))
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


def resumed_vocabulary(config: PretrainConfig, out: Path) -> Vocabulary:
    """The vocabulary of a run to resume.

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


def resumed_progress(
    config: PretrainConfig, now: TrainingProgress, out: Path, notify: Notify
) -> TrainingProgress:
    """The progress of the run in a directory.

    Args:
        config: the settings now.
        now: has the fingerprints of the texts now, and the number of processes.
        out: the directory.
        notify: prints what has changed.

    Raises:
        ValueError: there is no complete checkpoint, or the run cannot be resumed from it.
    """
    progress, before = read_progress(out / CHECKPOINT)
    for path in filter(Path.is_symlink, (out / BEST, out / LAST)):
        raise ValueError(
            f"Cannot resume: '{path}' is a link, and what it points to would be replaced. Put the "
            f"directory itself there, or remove the link."
        )
    check_resumable(before, config, notify)
    if progress.train_fingerprint != now.train_fingerprint:
        raise ValueError(
            "Cannot resume: the training text is not the one that the run was started with. Its "
            "files have other names, sizes or another order, or another reader or tokenizer. Put "
            "it back, or start a new run in another directory."
        )
    if progress.dev_fingerprint != now.dev_fingerprint:
        notify("The held-out text has changed: the best model is chosen again")
        progress.best, progress.dev_fingerprint = None, now.dev_fingerprint
    if not (out / BEST).exists():
        progress.best = None
    if progress.world_size != now.world_size:
        notify(f"Number of processes: {progress.world_size} before, now {now.world_size}")
    progress.world_size = now.world_size
    return progress
