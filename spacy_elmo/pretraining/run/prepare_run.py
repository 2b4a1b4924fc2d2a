"""A run before its first step: read and checked before anything is written."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from ...bilm.characters import CharacterIds
from ...bilm.static_vectors import RowIds, WordTable
from ...lm.encoded_sentences import EncodedSentences
from ...lm.vocabulary import Vocabulary
from ...text.corpus_reader import CorpusReader
from ...text.shards import Shards
from ..config import CORPORA, Entries, PretrainConfig, needs_spacy
from ..data.corpus import TrainingCorpus
from ..data.stats import CorpusStats, count_corpus
from ..data.teacher import vector_size
from ..data.word_table import find_table
from .checkpoint import TrainingProgress
from .distributed import ProcessGroup
from .log import LOG, read_log
from .schedule import Schedule
from .starting_point import (
    Notify,
    check_new,
    ended_before_checkpoint,
    resumed_progress,
    resumed_vocabulary,
    starting_card,
    starting_vocabulary,
)

WARM_UP_SENTENCES = 64


@dataclass(frozen=True)
class Run:
    """A run; nothing of it changes from the first step to the last.

    Attributes:
        out: its directory.
        config: all settings, with the shape of the weights or word vectors that they name.
        schedule: its steps and learning rates.
        vocab: the words that are predicted.
        table: the word vectors that the biLM reads instead of characters, or None.
        corpus: the training text.
        dev: the held-out text.
        warm_up_text: the sentences that give a warm state; none if sentences start from zeros.
        log: the entries of the log up to the checkpoint.
        resumed: whether there is a checkpoint to resume from.
        teacher_size: of the teacher's vectors; None if there is no teacher.
    """

    out: Path
    config: PretrainConfig
    schedule: Schedule
    vocab: Vocabulary
    table: WordTable | None
    corpus: TrainingCorpus
    dev: EncodedSentences
    warm_up_text: list[list[str]]
    log: Entries
    resumed: bool
    teacher_size: int | None


def prepare_run(
    config: PretrainConfig, out: Path, group: ProcessGroup, resume: bool, notify: Notify
) -> tuple[Run, TrainingProgress]:
    """Read and check all that a config and a directory name; nothing is written.

    Args:
        config: all settings, and what they name that only spaCy can make.
        out: the directory of the run.
        group: the processes that train.
        resume: from the checkpoint, or from the beginning if the run ended before its first one.
        notify: prints the statistics of the texts, and all that is noteworthy.

    Raises:
        ValueError: something is missing, empty, damaged, or contradicts something else.
    """
    settings = config.training
    if settings.state == "carried" and group.world_size > 1:
        raise ValueError(
            f'Config: [training] state is "carried", but a state cannot be carried across '
            f'{group.world_size} processes; train with one, or set state = "zero".'
        )
    resume = resume or group.has_claimed(out)
    if resume and ended_before_checkpoint(out):
        notify(f"'{out}' has no checkpoint yet: the run starts from the beginning")
        resume = False
    elif not resume:
        check_new(out)
    if settings.logger is not None and config.make_logger is None:
        raise needs_spacy("[training.logger] names a logger", "remove it")
    if settings.teacher is not None and config.teacher is None:
        raise needs_spacy("[training.teacher] names a function", "remove it")
    config, table = find_table(config, out, resume)
    train_reader, dev_reader = (find_reader(config, name) for name in CORPORA)
    meta = train_reader.card()
    if "lang" not in meta:
        notify("The language of the training text is unknown, so the card will not name it")
    elif dev_reader.card() not in ({}, meta):
        notify(f"The held-out text is {dev_reader.card()}, but the training text {meta}")
    to_ids: CharacterIds | RowIds
    if table is None:
        to_ids = CharacterIds(config.model.max_width, config.model.max_characters_per_token)
    else:
        to_ids = RowIds(table.words, table.rows)
        n_words, n_vectors, vector_dim = table.sizes().values()
        frozen = "trained" if settings.train_vectors else "frozen"
        notify(f"{n_words:,} words with {n_vectors:,} {vector_dim}-dimensional vectors, {frozen}")

    max_words, stats = config.corpus.max_words, None
    if not resume or settings.max_epochs:
        stats = count_corpus(train_reader.sentences(), max_words)
        _check_words("train", train_reader, stats)
    schedule = Schedule.plan(config, stats)
    if settings.max_epochs:
        notify(
            f"{schedule.n_steps:,} steps: max_epochs is {settings.max_epochs}, and an epoch has "
            f"about {schedule.epoch_steps:,}"
        )
    progress = TrainingProgress(
        train_fingerprint=train_reader.fingerprint(),
        dev_fingerprint=dev_reader.fingerprint(),
        world_size=group.world_size,
    )
    log: Entries = []
    if resume:
        progress = resumed_progress(config, progress, out, notify)
        if schedule.has_ended(progress):
            advice = "max_steps" if progress.step >= schedule.n_steps else "max_epochs"
            notify(
                f"The run has finished its {progress.step:,} steps already; to train longer, set a "
                f"higher --training.{advice}"
            )
            schedule = replace(schedule, n_steps=progress.step)
        log = _log_until(read_log(out / LOG), progress.step, schedule.n_steps)
        vocab = resumed_vocabulary(config, out)
    elif stats is not None:
        vocab, new_head = starting_vocabulary(config, stats, notify)
        progress.card = asdict(starting_card(config.start, meta, notify))
        if config.start is not None and new_head:
            progress.head_first = schedule.settings.head_first
            if progress.head_first >= schedule.n_steps:
                notify("The biLM itself stays frozen: head_first takes all steps")
        notify(f"train: {stats.describe(vocab, to_ids)}; vocabulary of {len(vocab):,}")
    progress.n_steps = schedule.n_steps

    dev_stats = CorpusStats(max_words)
    dev = EncodedSentences(dev_stats.count(dev_reader.sentences()), vocab, max_words, to_ids)
    _check_words("dev", dev_reader, dev_stats)
    notify(f"dev: {dev_stats.describe(vocab, to_ids)}")
    n_warm_up = WARM_UP_SENTENCES if settings.state == "carried" else 0
    run = Run(
        out=out,
        config=config,
        schedule=schedule,
        vocab=vocab,
        table=table,
        corpus=TrainingCorpus(train_reader, vocab, to_ids, config.corpus, settings, config.teacher),
        dev=dev,
        warm_up_text=list(islice(train_reader.sentences(), n_warm_up)),
        log=log,
        resumed=resume,
        teacher_size=config.teacher and vector_size(config.teacher, train_reader),
    )
    return run, progress


def find_reader(config: PretrainConfig, name: str) -> CorpusReader:
    """The reader of a text, "train" or "dev".

    Raises:
        ValueError: the config names none, or one that only spaCy can make.
    """
    if name in config.readers:
        return config.readers[name]
    if name in config.corpora:
        raise needs_spacy(f"[corpora.{name}] names a reader", f"give shards as [paths] {name}")
    paths = getattr(config.paths, name)
    if not paths:
        raise ValueError(f"Config: [paths] {name} is not set; give it as --paths.{name} PATH.")
    return Shards(paths)


def _check_words(name: str, reader: CorpusReader, stats: CorpusStats) -> None:
    """Raise a ValueError for a text without words, or for shards of nobody knows whom that look as
    if they were not tokenized."""
    files = ", ".join(f"'{file}'" for file in reader.files()[:3])
    if not stats.n_sentences:
        raise ValueError(f"There are no words in the {name} text: {files}.")
    if isinstance(reader, Shards) and not reader.card() and (glued := stats.glued()):
        raise ValueError(
            f"The {name} text is not tokenized: {len(glued) / len(stats.counts):.0%} of its "
            f"distinct words end in a punctuation mark, such as {', '.join(map(repr, glued[:3]))} "
            f"({files}). Convert it with `python -m spacy elmo tokenize`, or name the reader "
            f"spacy-elmo.Texts.v1 in [corpora.{name}], which tokenizes as it reads. If these are "
            f'its words, put a meta.json beside it that names its language: {{"lang": "en"}}'
        )


def _log_until(entries: Entries, step: int, n_steps: int) -> Entries:
    """Entries up to a step; the final evaluation will be repeated."""
    return [
        entry
        for entry in entries
        if entry["step"] <= step and not ("model" in entry and entry["step"] >= n_steps)
    ]
