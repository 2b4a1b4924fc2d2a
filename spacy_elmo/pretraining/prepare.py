"""A run before its first step: new or resumed; read and checked before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from os.path import lexists
from pathlib import Path

from torch import nn

from ..bilm.characters import CharacterIds
from ..lm.encoded_sentences import EncodedSentences
from ..lm.head import load_head
from ..lm.vocabulary import SPECIALS, Vocabulary
from ..text.corpus_reader import CorpusReader
from ..text.shards import Shards
from ..weights.find import find_weights, load_bilm
from ..weights.layout import HEAD, VOCAB, WEIGHTS, Card
from ..weights.native import Weights
from .config import CONFIG, CORPORA, PretrainConfig, make_block
from .corpus import TrainingCorpus
from .distributed import ProcessGroup
from .log import LOG, Entries, read_log
from .schedule import Schedule
from .state import CHECKPOINT, EARLIER, Progress, State, read_checkpoint
from .stats import CorpusStats, count_corpus
from .teacher import Teacher, vector_size

BEST, LAST = "model-best", "model-last"
# What may not change on resuming: it fixes the parameters' shapes or the order of the corpus, or is
# of use only before the first step.
TRAINING = "seed", "batch_words", "teacher", "head_first"
SECTIONS = "[model] ", "[corpus] ", "[vocab] ", "[paths] vocab:"
FIXED = (*SECTIONS, *(f"[training] {name}:" for name in TRAINING))
# A run that ends with its epochs could not tell how many steps these have.
FIXED_BY_EPOCHS = (*FIXED, "[training] accumulate_gradient:")

Notify = Callable[[str], None]  # prints a message


@dataclass(frozen=True)
class Run:
    """What does not change from the first step of a run to the last.

    Attributes:
        out: its directory.
        config: all settings, with the shape of the weights that they name.
        schedule: its steps and learning rates.
        vocab: the words that are predicted.
        corpus: the training text.
        dev: the held-out text.
        log: the entries of the log up to the checkpoint.
        is_resumed: whether it is resumed from a checkpoint.
    """

    out: Path
    config: PretrainConfig
    schedule: Schedule
    vocab: Vocabulary
    corpus: TrainingCorpus
    dev: EncodedSentences
    log: Entries
    is_resumed: bool


def prepare(
    config: PretrainConfig, out: Path, group: ProcessGroup, is_resumed: bool, notify: Notify
) -> tuple[Run, State]:
    """Read and check all that a config and a directory name; nothing is written.

    Args:
        config: all settings.
        out: the directory of the run.
        group: the processes that train.
        is_resumed: whether there is a checkpoint to resume from.
        notify: prints the statistics of the texts, and all that is noteworthy.

    Raises:
        ValueError: something is missing, empty, damaged, or contradicts something else.
    """
    settings, max_words = config.training, config.corpus.max_words
    # The model: that of the checkpoint, of the weights to start from, or a new one
    progress, start, before = Progress(), None, None
    if is_resumed:
        progress, before = read_checkpoint(out / CHECKPOINT)
        config = replace(config.without_start(), model=config.model or before.model)
    elif config.paths.weights is not None:
        start = find_weights(config.paths.weights)
        config = config.with_model(start.config(), start.where)
    shape = config.model
    if shape is None:
        raise ValueError("Config: there is no [model] section. Add one, or give weights (--from).")
    if before is not None:
        check_resumable(before, config, out, notify)

    # The texts
    train, dev = (find_reader(config, name) for name in CORPORA)
    for file in (*train.files(), *dev.files()):
        if file.resolve().parent == out.resolve():
            raise ValueError(
                f"'{out}' is the directory of the text '{file.name}', and the files of the run "
                f"would be read as text; choose another directory."
            )
    meta = train.card()
    if "lang" not in meta:
        notify("The language of the training text is unknown, so the card will not name it")
    elif dev.card() not in ({}, meta):
        notify(f"The held-out text is {dev.card()}, but the training text {meta}")
    to_ids = CharacterIds.of(shape)
    stats = None
    if not is_resumed or settings.max_epochs:
        stats = count_corpus(train.sentences(), max_words, read=to_ids.read)
        check_words("train", train, stats)
    schedule = Schedule.plan(config, stats)
    if settings.max_epochs:
        notify(
            f"{schedule.n_steps:,} steps: max_epochs is {settings.max_epochs}, and an epoch has "
            f"about {schedule.epoch_steps:,}"
        )

    # Where the run stands, and the words that are predicted
    fingerprints = train.fingerprint(), f"{dev.fingerprint()} {settings.eval_words}"
    log: Entries = []
    new_head = False
    if before is not None:
        check_texts(progress, *fingerprints, notify)
        if not (out / BEST).exists():
            progress.best = None
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
        vocab = Vocabulary.read(out / VOCAB)
    elif stats is not None:
        progress.train_fingerprint, progress.dev_fingerprint = fingerprints
        progress.card = asdict(starting_card(start, meta, notify))
        vocab, new_head = starting_vocabulary(config, start, stats, notify)
        progress.is_adapted = start is not None and not new_head
        if start is not None and new_head:
            progress.head_first = schedule.settings.head_first
            if progress.head_first >= schedule.n_steps:
                notify("The biLM itself stays frozen: head_first takes all steps")
        notify(f"train: {stats.describe(vocab, to_ids)}; vocabulary of {len(vocab):,}")
    progress.n_steps = schedule.n_steps
    dev_stats = CorpusStats(max_words, read=to_ids.read)
    held_out = EncodedSentences(dev_stats.count(dev.sentences()), vocab, max_words, to_ids)
    check_words("dev", dev, dev_stats)
    notify(f"dev: {dev_stats.describe(vocab, to_ids)}")

    # The state
    teacher: Teacher | None = None
    teacher_size = 0
    if settings.teacher is not None:
        teacher = make_block("training.teacher", settings.teacher)
        if not callable(teacher):
            raise settings.error("teacher", "it must name a function that makes a function")
        teacher_size, share = vector_size(teacher, train, max_words)
        notify(f"A teacher of {share:.0%} of the sentences")
    state = State(config, len(vocab), group, progress, teacher_size=teacher_size)
    corpus = TrainingCorpus(train, vocab, to_ids, config.corpus, settings, teacher)
    if is_resumed:
        state.load(out / CHECKPOINT)
    elif start is not None:
        copy_parameters(load_bilm(start), state.model)
        if not new_head:
            copy_parameters(load_head(start)[0], state.head)
    return Run(out, config, schedule, vocab, corpus, held_out, log, is_resumed), state


def check_new(out: Path, resume: bool) -> None:
    """Raise a ValueError if a run that starts from the beginning would write over something.

    Args:
        out: its directory.
        resume: the user says that it is a run; before its first checkpoint, this has only the files
            that it will write again.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"'{out}' is a file; give a directory for the run.")
    if (out / CHECKPOINT).exists():
        raise ValueError(
            f"'{out}' has the checkpoint of another run; resume it with --resume, or choose "
            f"another directory."
        )
    begun = () if resume else (VOCAB, CONFIG)
    later = (BEST, LAST, LOG, WEIGHTS, HEAD, *(path.name for path in out.glob(EARLIER)))
    found = [name for name in (*begun, *later) if lexists(out / name)]  # also a link to nowhere
    if found:
        is_begun = {*found} <= {*begun}
        again = ", or begin a run that was killed again with --resume" if is_begun else ""
        raise ValueError(
            f"'{out}' has {', '.join(found)} already, but no checkpoint, and a run would "
            f"overwrite them; choose another directory{again}."
        )


def check_resumable(
    before: PretrainConfig, config: PretrainConfig, out: Path, notify: Notify
) -> None:
    """Compare a checkpoint's config with the present one, and print what differs.

    Raises:
        ValueError: a difference would change the model, the position in the corpus, or where an
            epoch ends; or what the run would replace is elsewhere.
    """
    for path in filter(Path.is_symlink, (out / BEST, out / LAST)):
        raise ValueError(
            f"Cannot resume: '{path}' is a link, and what it points to would be replaced. Put the "
            f"directory itself there, or remove the link."
        )
    was, now = before.to_dict(), config.to_dict()
    changed = [
        f"[{section}] {name}: {was[section].get(name)!r} → {settings.get(name)!r}"
        for section, settings in now.items()
        for name in {**was[section], **settings}
        if was[section].get(name) != settings.get(name)
    ]
    kinds = FIXED_BY_EPOCHS if config.training.max_epochs else FIXED
    fixed = [line for line in changed if line.startswith(kinds)]
    if fixed:
        raise ValueError(
            "Cannot resume, because these settings differ from the checkpoint's: "
            f"{'; '.join(fixed)}. Set them back, or start a new run in another directory."
        )
    for line in changed:
        notify(f"Changed since the checkpoint: {line}")


def check_texts(progress: Progress, train: str, dev: str, notify: Notify) -> None:
    """Compare the fingerprints of the texts with those of a resumed run: another held-out text, or
    part of it, has another best model.

    Raises:
        ValueError: the training text has changed.
    """
    if progress.train_fingerprint != train:
        raise ValueError(
            "Cannot resume: the training text is not the one that the run was started with. Its "
            "files have other names, sizes or another order, or another reader or tokenizer. Put "
            "it back, or start a new run in another directory."
        )
    if progress.dev_fingerprint != dev:
        notify("The held-out text has changed: the best model is chosen again")
        progress.best, progress.dev_fingerprint = None, dev


def find_reader(config: PretrainConfig, name: str) -> CorpusReader:
    """The reader of a text, "train" or "dev".

    Raises:
        ValueError: the config names none, or something else.
    """
    if name in config.corpora:
        block = config.corpora[name]
        reader = make_block(f"corpora.{name}", block)
        if not isinstance(reader, CorpusReader):
            raise ValueError(
                f"Config: [corpora.{name}] names '{block['@readers']}', which does not read texts "
                f"for pretraining; name spacy-elmo.Texts.v1, spacy-elmo.Shards.v1, or a function "
                f"that returns a CorpusReader."
            )
        return reader
    paths = getattr(config.paths, name)
    if not paths:
        raise ValueError(
            f"Config: [paths] {name} is not set; give it as --paths.{name} PATH, or name a reader "
            f"in [corpora.{name}]."
        )
    return Shards(paths)


def starting_vocabulary(
    config: PretrainConfig, start: Weights | None, stats: CorpusStats, notify: Notify
) -> tuple[Vocabulary, bool]:
    """The vocabulary of a new run, and whether its head is newly initialized.

    Args:
        config: all settings.
        start: the weights to start from, if any.
        stats: of the training text.
        notify: prints why the head is new although the run starts from a biLM.

    Raises:
        ValueError: a vocabulary cannot be read, or it would be empty.
    """
    path, settings = config.paths.vocab, config.vocab
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


def check_words(name: str, reader: CorpusReader, stats: CorpusStats) -> None:
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


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Copy the values of a module's parameters from another module of the same shape."""
    values = source.state_dict()
    for name, parameter in target.named_parameters():
        parameter.data.copy_(values[name])
