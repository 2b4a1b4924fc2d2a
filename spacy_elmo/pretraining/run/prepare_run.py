"""A run before its first step: new or resumed; read and checked before anything is written."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ...bilm.characters import CharacterIds
from ...bilm.static_vectors import RowIds, WordTable
from ...lm.encoded_sentences import EncodedSentences
from ...lm.vocabulary import SPECIALS, Vocabulary
from ...text.corpus_reader import CorpusReader
from ...text.shards import Shards
from ...util.files import WORKPLACE
from ...weights.layout import HEAD, VOCAB, WEIGHTS, Card
from ...weights.native import Weights
from ..config import CORPORA, Notify, PretrainConfig
from ..data.corpus import TrainingCorpus
from ..data.stats import CorpusStats, count_corpus
from ..data.word_table import TABLE, find_table
from ..train_step import Schedule
from .checkpoint import BEST, CHECKPOINT, LAST, TrainingProgress, resume
from .distributed import LAUNCH, ProcessGroup
from .log import LOG, Entries, read_log


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
        log: the entries of the log up to the checkpoint.
        resumed: whether there is a checkpoint to resume from.
        has_new_head: whether the run starts from a biLM, but not from its head.
    """

    out: Path
    config: PretrainConfig
    schedule: Schedule
    vocab: Vocabulary
    table: WordTable | None
    corpus: TrainingCorpus
    dev: EncodedSentences
    log: Entries
    resumed: bool
    has_new_head: bool


def prepare_run(
    config: PretrainConfig, out: Path, group: ProcessGroup, resumed: bool, notify: Notify
) -> tuple[Run, TrainingProgress]:
    """Read and check all that a config and a directory name; nothing is written.

    Args:
        config: all settings.
        out: the directory of the run.
        group: the processes that train.
        resumed: from the checkpoint, or from the beginning if the run ended before its first one.
        notify: prints the statistics of the texts, and all that is noteworthy.

    Raises:
        ValueError: something is missing, empty, damaged, or contradicts something else.
    """
    settings, max_words = config.training, config.corpus.max_words
    if settings.state == "carried" and group.world_size > 1:
        raise ValueError(
            f'Config: [training] state is "carried", but a state cannot be carried across '
            f'{group.world_size} processes; train with one, or set state = "zero".'
        )
    resumed = resumed or group.has_claimed(out)
    if resumed and ended_before_checkpoint(out):
        notify(f"'{out}' has no checkpoint yet: the run starts from the beginning")
        resumed = False
    elif not resumed:
        check_new(out)
    config, table = find_table(config, out, resumed, notify)
    train, dev = (find_reader(config, name, notify) for name in CORPORA)
    for file in (*train.files(), *dev.files()):
        if file.resolve().parent == out.resolve():
            raise ValueError(
                f"'{out}' is the directory of the text '{file.name}', and the files of the run "
                f"would be read as text; choose another directory."
            )
    teacher = None
    if settings.teacher is not None:
        teacher = config.make("training.teacher", settings.teacher, notify)
        if not callable(teacher):
            raise settings.error("teacher", "it must name a function that makes a function")
    meta = train.card()
    if "lang" not in meta:
        notify("The language of the training text is unknown, so the card will not name it")
    elif dev.card() not in ({}, meta):
        notify(f"The held-out text is {dev.card()}, but the training text {meta}")
    to_ids: CharacterIds | RowIds
    if table is None:
        to_ids = CharacterIds(config.model.max_width, config.model.max_characters_per_token)
    else:
        to_ids = RowIds(table.words, table.rows)
        n_words, n_vectors, vector_dim = table.sizes().values()
        frozen = "trained" if settings.train_vectors else "frozen"
        notify(f"{n_words:,} words with {n_vectors:,} {vector_dim}-dimensional vectors, {frozen}")

    stats = None
    if not resumed or settings.max_epochs:
        stats = count_corpus(train.sentences(), max_words)
        _check_words("train", train, stats)
    schedule = Schedule.plan(config, stats)
    if settings.max_epochs:
        notify(
            f"{schedule.n_steps:,} steps: max_epochs is {settings.max_epochs}, and an epoch has "
            f"about {schedule.epoch_steps:,}"
        )
    progress = TrainingProgress(
        train_fingerprint=train.fingerprint(),
        dev_fingerprint=dev.fingerprint(),
        world_size=group.world_size,
    )
    log: Entries = []
    has_new_head = False
    if resumed:
        progress = resume(out, config, progress, notify)
        if schedule.has_ended(progress):
            advice = "max_steps" if progress.step >= settings.max_steps else "max_epochs"
            notify(
                f"The run has finished its {progress.step:,} steps already; to train longer, set a "
                f"higher --training.{advice}"
            )
            schedule = replace(schedule, n_steps=progress.step)
        log = [
            entry
            for entry in read_log(out / LOG)
            if entry["step"] <= progress.step
            # The final evaluation will be repeated.
            and not ("model" in entry and entry["step"] >= schedule.n_steps)
        ]
        vocab = resumed_vocabulary(config, out)
    elif stats is not None:
        vocab, new_head = starting_vocabulary(config, stats, notify)
        progress.card = asdict(starting_card(config.start, meta, notify))
        has_new_head = config.start is not None and new_head
        if has_new_head:
            progress.head_first = schedule.settings.head_first
            if progress.head_first >= schedule.n_steps:
                notify("The biLM itself stays frozen: head_first takes all steps")
        notify(f"train: {stats.describe(vocab, to_ids)}; vocabulary of {len(vocab):,}")
    progress.n_steps = schedule.n_steps

    dev_stats = CorpusStats(max_words)
    block = EncodedSentences(dev_stats.count(dev.sentences()), vocab, max_words, to_ids)
    _check_words("dev", dev, dev_stats)
    notify(f"dev: {dev_stats.describe(vocab, to_ids)}")
    corpus = TrainingCorpus(train, vocab, to_ids, config.corpus, settings, teacher)
    run = Run(out, config, schedule, vocab, table, corpus, block, log, resumed, has_new_head)
    return run, progress


def find_reader(config: PretrainConfig, name: str, notify: Notify) -> CorpusReader:
    """The reader of a text, "train" or "dev".

    Raises:
        ValueError: the config names none, or something else.
    """
    if name in config.corpora:
        block = config.corpora[name]
        reader = config.make(f"corpora.{name}", block, notify)
        if not isinstance(reader, CorpusReader):
            raise ValueError(
                f"Config: [corpora.{name}] names '{block['@readers']}', which does not read texts "
                f"for pretraining; use spacy-elmo.Texts.v1 or spacy-elmo.Shards.v1."
            )
        return reader
    paths = getattr(config.paths, name)
    if not paths:
        raise ValueError(f"Config: [paths] {name} is not set; give it as --paths.{name} PATH.")
    return Shards(paths)


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
    # What a run writes later; and a model itself, whose vocabulary would be written over.
    later = (BEST, LAST, Path(CHECKPOINT).stem, LOG, WEIGHTS, HEAD)
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
    start, path, settings = config.start, config.paths.vocab, config.vocab
    given = None if path is None else Vocabulary.read(Path(path))
    if start is not None and start.has_head():
        vocab = Vocabulary(start.words())
        if given is None or given.words == vocab.words:
            return vocab, False
        notify(f"[paths] vocab differs from the vocabulary of '{start.where}': the head is new")
    elif start is not None:
        notify(f"'{start.where}' has no head: a new one is trained first")
    if given is None:
        given = Vocabulary.from_counts(stats.counts, settings.max_size, settings.min_count)
    if len(given) == len(SPECIALS):
        raise ValueError(
            f"[paths] vocab, '{path}', has no words besides {', '.join(SPECIALS)}."
            if path is not None
            else f"No word of the training text occurs [vocab] min_count ({settings.min_count}) "
            f"times; lower it, or give more text."
        )
    return given, True


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
    inherited = ("license", "sources", "lang", *(() if lang else ("tokenizer",)))
    meta = {name: card.meta[name] for name in inherited if name in card.meta}
    if "name" in card.meta:
        meta["started_from"] = card.meta["name"]
    # Its README describes that biLM alone.
    documents = {name: text for name, text in card.documents.items() if name != "README.md"}
    return Card({**meta, **text}, documents)


def _check_words(name: str, reader: CorpusReader, stats: CorpusStats) -> None:
    """Raise a ValueError for a text without words, or for shards without a meta.json that
    look untokenized."""
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
