"""A run before its first step: reads and checks everything, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from os.path import lexists
from pathlib import Path

from spacy.util import dict_to_dot

from ..bilm.characters import CharacterIds
from ..lm.encoded_sentences import EncodedSentences
from ..lm.head import load_head
from ..lm.vocabulary import SPECIALS, Vocabulary
from ..text.readers import CorpusReader
from ..text.shards import Shards
from ..weights.find import find_weights, load_bilm
from ..weights.layout import HEAD, VOCAB, WEIGHTS, Card
from ..weights.native import Weights
from .checkpoint import CHECKPOINT, Progress, State, read_checkpoint
from .config import CONFIG, CORPORA, PretrainConfig, make_block
from .corpus import TrainingCorpus
from .distributed import ProcessGroup
from .log import LOG, read_log
from .schedule import has_ended, run_length
from .stats import MOST_ATTACHED, CorpusStats, count_corpus
from .teacher import Teacher, find_teacher

BEST, LAST = "model-best", "model-last"
# Settings that may not change when a run resumes: they decide the shapes of parameters, the order
# of the corpus or which model is best, or are used before the first step only.
FIXED = (
    "model.", "corpus.", "vocab.", "paths.vocab", "training.seed", "training.batch_words",
    "training.teacher", "training.head_first", "training.eval_words", "corpora.train.column",
    "corpora.dev.column",
)  # fmt: skip

Notify = Callable[[str], None]  # prints a message


@dataclass(frozen=True)
class Run:
    """What does not change from the first step of a run to the last.

    Attributes:
        out: the directory of the run.
        config: the settings, with [model].
        vocab: the vocabulary of the head.
        corpus: the training text.
        dev: the held-out text.
        notify: prints a message.
    """

    out: Path
    config: PretrainConfig
    vocab: Vocabulary
    corpus: TrainingCorpus
    dev: EncodedSentences
    notify: Notify


def prepare(
    config: PretrainConfig, out: Path, group: ProcessGroup, is_resumed: bool, notify: Notify
) -> tuple[Run, State]:
    """Read and check everything that a config and the directory of a run name.

    Args:
        config: the settings.
        out: the directory of the run.
        group: the processes that train.
        is_resumed: whether the run resumes from its checkpoint.
        notify: prints statistics of the texts, and warnings.

    Raises:
        ValueError: something is missing, empty or damaged, or contradicts something else.
    """
    # The model: from the checkpoint, from the weights to start from, or a new one
    progress, start = Progress(), None
    if is_resumed:
        progress, before = read_checkpoint(out / CHECKPOINT)
        config = resumed_config(before, config, out, notify)
        read_log(out / LOG)  # all processes read it, before one writes
        if not (out / BEST).exists():
            progress.best = None
    elif config.paths.weights is not None:
        start = find_weights(config.paths.weights)
        config = config.with_model(start.config(), start.where)
    shape, max_words = config.model, config.corpus.max_words
    if shape is None:
        raise ValueError("Config: there is no [model] section. Add one, or give weights (--from).")

    block = config.training.teacher
    teach = None if block is None else make_block("training.teacher", block, "@misc")

    # The texts and the vocabulary
    to_ids, listed = CharacterIds.of(shape), None
    if config.paths.vocab is not None:
        words = Vocabulary.read(Path(config.paths.vocab)).words
        listed = Vocabulary(list(dict.fromkeys(to_ids.read([word])[0] for word in words)))
    train, dev = (find_reader(config, name, out) for name in CORPORA)
    fingerprints = [train.fingerprint(), dev.fingerprint()]
    if is_resumed:
        if progress.fingerprints != fingerprints:
            raise ValueError(
                "Cannot resume: the texts are not those that the run was started with. Files have "
                "other names, sizes or another order, or another reader or tokenizer: put them "
                "back, or start a new run in another directory."
            )
        vocab, has_new_head = Vocabulary.read(out / VOCAB), False
    else:
        if "lang" not in train.card():
            notify(
                "The language of the training text is unknown. Words are taken to be separated "
                "by spaces: if they are not, run `python -m spacy elmo tokenize` first"
            )
        stats = count_corpus(train.sentences(), max_words, to_ids.read)
        if not stats.n_words:
            raise ValueError(f"There are no words in the train text: '{train.files()[0]}'.")
        check_tokenized("train", train, stats)
        check_tokenized("dev", dev)
        vocab, has_new_head = starting_vocabulary(config, listed, start, stats, notify)
        progress.fingerprints = fingerprints
        progress.card = asdict(starting_card(start, train.card()))
        progress.epoch_steps = stats.epoch_steps(config)
        notify(f"train: {stats.describe(vocab, shape.max_characters_per_token)}")
    held_out = EncodedSentences(dev.sentences(), vocab, max_words, to_ids)
    if not len(held_out.lengths):
        raise ValueError(f"There are no words in the dev text: '{dev.files()[0]}'.")
    notify(f"dev: {len(held_out.lengths):,} sentences; vocabulary of {len(vocab):,}")

    if start is not None and has_new_head:
        # At most half of the run, so that the biLM learns too.
        half = run_length(config.training, progress) // 2
        progress.head_first = min(config.training.head_first, half)
    if has_ended(config.training, progress):
        notify(
            f"The run has finished its {progress.step:,} steps already; to train longer, set a "
            f"higher --training.max_steps, and more --training.max_epochs or --minutes if it has "
            f"any"
        )

    # The state
    teacher: Teacher | None = None
    if teach is not None:
        teacher, share = find_teacher(teach, train, max_words, to_ids.read)
        notify(f"A teacher of {share:.0%} of the sentences")
    state = State(config, len(vocab), group, progress, teacher.size if teacher else 0)
    if is_resumed:
        state.load(out / CHECKPOINT)
    elif start is not None:
        state.model.load_state_dict(load_bilm(start).state_dict(), strict=False)  # no warm state
        if not has_new_head:
            state.head.load_state_dict(load_head(start)[0].state_dict())
    corpus = TrainingCorpus(train, vocab, to_ids, config, teacher)
    return Run(out, config, vocab, corpus, held_out, notify), state


def check_new(out: Path, resume: bool) -> None:
    """Raise a ValueError if a new run would overwrite something.

    Args:
        out: the directory of the run.
        resume: the user says that there is a run. Before its first checkpoint, it has written
            only a vocabulary and a config.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"'{out}' is a file; give a directory for the run.")
    # A link would be written through.
    early = (name for name in (VOCAB, CONFIG) if not resume or (out / name).is_symlink())
    later = (CHECKPOINT, BEST, LAST, LOG, WEIGHTS, HEAD)
    present = [name for name in (*early, *later) if lexists(out / name)]  # also a link to nowhere
    if present:
        advice = "" if resume else ", or continue that run with --resume"
        raise ValueError(
            f"'{out}' has {', '.join(present)} already, and a new run would overwrite them; choose "
            f"another directory{advice}."
        )


def resumed_config(
    before: PretrainConfig, config: PretrainConfig, out: Path, notify: Notify
) -> PretrainConfig:
    """The config of a resumed run, with [model] from the checkpoint; prints what has changed.

    Args:
        before: the config in the checkpoint.
        config: the config that the user gives now.
        out: the directory of the run.
        notify: prints.

    Raises:
        ValueError: a change would concern the model, the order of the corpus, or the best model;
            or a model of the run is a link.
    """
    for path in filter(Path.is_symlink, (out / BEST, out / LAST)):
        raise ValueError(
            f"Cannot resume: '{path}' is a link, and what it points to would be replaced. Put the "
            f"directory itself there, or remove the link."
        )
    # The run needs no weights to start from, but its config still names them.
    paths = replace(config.paths, weights=before.paths.weights)
    if config.training.minutes and not before.training.minutes:
        raise ValueError(
            "Cannot resume: the run was not started with minutes. Leave out --minutes, and set "
            "--training.max_steps to change its length."
        )
    config = replace(config, paths=paths, model=config.model or before.model)
    was, now = dict_to_dot(before.to_dict()), dict_to_dot(config.to_dict())
    names = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    changed = [f"{name}: {was.get(name)!r} → {now.get(name)!r}" for name in names]
    fixed = [line for line in changed if line.startswith(FIXED)]
    if fixed:
        raise ValueError(
            "Cannot resume, because these settings differ from the checkpoint's: "
            f"{'; '.join(fixed)}. Set them back, or start a new run in another directory."
        )
    for line in changed:
        notify(f"Changed since the checkpoint: {line}")
    return config


def find_reader(config: PretrainConfig, name: str, out: Path) -> CorpusReader:
    """The reader of the training text or the held-out text.

    Args:
        config: the settings.
        name: ``"train"`` or ``"dev"``.
        out: the directory of the run.

    Raises:
        ValueError: the config names no reader, or ``out`` is the directory of the text.
    """
    if name in config.corpora:
        reader = make_block(f"corpora.{name}", config.corpora[name], "@readers")
        if not isinstance(reader, CorpusReader):
            raise ValueError(
                f"Config: {config.corpora[name]['@readers']} ([corpora.{name}]) does not read "
                f"texts for pretraining; name spacy-elmo.Texts.v1, or what returns a CorpusReader."
            )
    elif paths := getattr(config.paths, name):
        reader = Shards(paths)
    else:
        raise ValueError(
            f"Config: [paths] {name} is not set; give it as --paths.{name} PATH, or name a reader "
            f"in [corpora.{name}]."
        )
    for file in reader.files():
        if file.resolve().parent == out.resolve():
            raise ValueError(
                f"'{out}' is the directory of the text '{file.name}', and the files of the run "
                f"would be read as text; choose another directory."
            )
    return reader


def check_tokenized(name: str, reader: CorpusReader, stats: CorpusStats | None = None) -> None:
    """Raise a ValueError if a text is raw: punctuation is attached to words, and no `card` says
    that it was tokenized. The text is read if its statistics are not given."""
    if "lang" in reader.card():
        return
    share = (stats or count_corpus(reader.sentences(), max_words=1)).attached
    if share > MOST_ATTACHED:
        raise ValueError(
            f"The {name} text '{reader.files()[0]}' is not tokenized: {share:.0%} of its words end "
            f"in a comma or another mark. Run `python -m spacy elmo tokenize` first, or name a "
            f"reader of raw text, spacy-elmo.Texts.v1, in [corpora.{name}]."
        )


def starting_vocabulary(
    config: PretrainConfig,
    listed: Vocabulary | None,
    start: Weights | None,
    stats: CorpusStats,
    notify: Notify,
) -> tuple[Vocabulary, bool]:
    """The vocabulary of a new run, and whether its head is newly initialized.

    Args:
        config: the settings.
        listed: the words in [paths] vocab as the biLM reads them, if that is set.
        start: the weights to start from, if any.
        stats: statistics of the training text.
        notify: prints why the head is new although the run starts from a biLM.

    Raises:
        ValueError: the vocabulary would be empty.
    """
    path, settings = config.paths.vocab, config.vocab
    if start is not None and start.has_head():
        vocab = Vocabulary(start.words())
        if listed is None or listed.words == vocab.words:
            return vocab, False
        notify(f"[paths] vocab differs from the vocabulary of '{start.where}': the head is new")
    elif start is not None:
        notify(f"'{start.where}' has no head: a new one is trained first")
    vocab = listed or Vocabulary.from_counts(stats.counts, settings.max_size, settings.min_count)
    if len(vocab) == len(SPECIALS):
        raise ValueError(
            f"There are no words to predict: '{path}' ([paths] vocab) has none, or none of the "
            f"text occurs [vocab] min_count ({settings.min_count}) times; lower it."
        )
    return vocab, True


def starting_card(start: Weights | None, text: dict[str, str]) -> Card:
    """The card of a new biLM: the language of its text, and the licence and the sources of the
    biLM that it starts from.

    Args:
        start: the weights to start from, if any.
        text: the card of the training text.
    """
    if start is None:
        return Card(dict(text))
    card = start.card()
    inherited = ("license", "sources", "lang", *(() if "lang" in text else ("tokenizer",)))
    meta = {name: card.meta[name] for name in inherited if name in card.meta}
    if "name" in card.meta:
        meta["started_from"] = card.meta["name"]
    # The README describes the old biLM alone.
    documents = {name: text for name, text in card.documents.items() if name != "README.md"}
    return Card({**meta, **text}, documents)
