"""All that a run needs before its first step, read and checked before anything is written."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ...bilm.characters import CharacterIds
from ...bilm.find import find_weights
from ...bilm.layout import VOCAB, Card
from ...bilm.word_vectors import RowIds, WordTable
from ...lm.batches import EncodedSentences, ToIds
from ...lm.softmax import LogUniformSampler
from ...lm.vocabulary import Vocabulary
from ..config import PretrainConfig, TrainingSettings
from ..data.corpus import Corpus
from ..data.reader import CorpusReader
from ..data.stats import CorpusStats, count_corpus
from ..data.word_table import TABLE, find_table
from .checkpoint import CHECKPOINT, Progress, check_resumable, read_progress
from .distributed import LAUNCH
from .given import Given
from .log import LOG, read_log
from .schedule import has_ended, schedule, steps_in_epoch
from .start import Say, card_after, first_vocabulary, vocabulary_of_run

BEST, LAST, CONFIG = "model-best", "model-last", "config.cfg"
PASSAGE_SENTENCES = 64


@dataclass
class Prepared:
    """What `prepare` found.

    Attributes:
        config: all settings, sizes of the word vectors and all.
        table: the word vectors, if the biLM is on top of some.
        training: the config's settings, with the schedule that the run has.
        in_epoch: about how many steps a pass over the text has, if it was surveyed.
        progress: how far the run has come.
        vocab: the words that are predicted.
        corpus: the training text.
        dev: the held-out text.
        sampler: of the softmax's candidates; None for the full softmax.
        log: the entries of the log that still hold.
        passage: the first sentences of the text, to be read for a warm state; none without one.
        resumed: whether there is a checkpoint to go on from.
    """

    config: PretrainConfig
    table: WordTable | None
    training: TrainingSettings
    in_epoch: int | None
    progress: Progress
    vocab: Vocabulary
    corpus: Corpus
    dev: EncodedSentences
    sampler: LogUniformSampler | None
    log: list[dict[str, Any]]
    passage: list[list[str]]
    resumed: bool


def prepare(given: Given, out: Path, resume: bool, say: Say) -> Prepared:
    """Read and check all that a config and the directory of its run name; nothing is written.

    Args:
        given: what the run is given.
        out: the directory of the run.
        resume: go on from its checkpoint; from the beginning if it was ended before the first.
        say: told what is in the texts, and what they lose.

    Raises:
        ValueError: something is missing, empty, damaged, or does not go together.
    """
    if resume and _is_only_begun(out):
        say(f"'{out}' has no checkpoint yet: the run starts from the beginning")
        resume = False
    elif not resume:
        _check_new(out)
    config, table = find_table(given.config, out, resume, given.vectors)
    if config.training.logger is not None and given.follow is None:
        raise ValueError(
            "Config: [training.logger] names a logger, which only spaCy can make: use `python -m "
            "spacy elmo pretrain`, or remove it."
        )
    train_text, dev_text = (given.source(name) for name in ("train", "dev"))
    meta = train_text.card()
    if "lang" not in meta:
        say("It is not known of what one language the training text is: the biLM will name none")
    elif dev_text.card() not in ({}, meta):
        say(f"The held-out text is {dev_text.card()}, but the training text {meta}")
    text, dev_of = train_text.fingerprint(), dev_text.fingerprint()
    words = None
    if table is not None:
        words = RowIds(table.words, table.rows)
        n_words, n_vectors, vector_dim = table.sizes().values()
        learn = "learn too" if config.training.train_vectors else "stay as they are"
        say(f"{n_words:,} words with {n_vectors:,} vectors of {vector_dim}, which {learn}")
    progress, log = Progress(text=text, dev_text=dev_of), []
    train: CorpusStats | None = None
    if not resume or config.training.max_epochs:
        train = _survey("train", train_text, config)
    training = schedule(config, train)
    in_epoch = None if train is None else steps_in_epoch(config, train)
    if training is not config.training:
        say(
            f"{training.max_steps:,} steps: max_epochs is {training.max_epochs}, and one has about "
            f"{in_epoch:,}"
        )
    if resume:
        progress = _resumed(config, progress, out, say)
        if has_ended(progress, training):
            advice = "max_steps" if progress.step >= training.max_steps else "max_epochs"
            say(
                f"The run has finished its {progress.step:,} steps already; to train on, set a "
                f"higher --training.{advice}"
            )
            training = replace(training, max_steps=progress.step)
        log = _log_until(read_log(out / LOG), progress.step, training.max_steps)
        vocab = vocabulary_of_run(config, out)
    elif train is not None:
        vocab, new_head = first_vocabulary(config, train, say)
        card = Card(dict(meta))
        if config.paths.weights is not None:
            card = card_after(find_weights(config.paths.weights), meta, say)
            progress.held = training.head_first if new_head else 0
            if progress.held >= training.max_steps:
                say("The biLM itself does not learn: head_first takes all steps")
        progress.card = asdict(card)
        say(f"train: {_describe(train, vocab, config, words)}; vocabulary of {len(vocab):,}")
    sampler = None
    if config.softmax.kind == "sampled":
        sampler = LogUniformSampler(len(vocab), config.softmax.n_candidates)
    say(f"dev: {_describe(_survey('dev', dev_text, config), vocab, config, words)}")
    to_ids: ToIds
    if words is not None:
        to_ids = words
    else:
        to_ids = CharacterIds(config.model.max_width, config.model.max_characters_per_token)
    max_words = config.corpus.max_words
    corpus = Corpus(
        train_text,
        vocab,
        buffer_words=config.corpus.buffer_words,
        batch_words=config.training.batch_words,
        seed=config.training.seed,
        n_streams=config.training.n_streams if config.training.state == "carried" else None,
        max_words=max_words,
        to_ids=to_ids,
    )
    dev = EncodedSentences(dev_text.sentences(), vocab, max_words, to_ids)
    passage: list[list[str]] = []
    if config.training.state == "carried":
        passage = list(islice(train_text.sentences(), PASSAGE_SENTENCES))
    progress.n_steps = training.max_steps
    return Prepared(
        config=config,
        table=table,
        training=training,
        in_epoch=in_epoch,
        progress=progress,
        vocab=vocab,
        corpus=corpus,
        dev=dev,
        sampler=sampler,
        log=log,
        passage=passage,
        resumed=resume,
    )


def _resumed(config: PretrainConfig, now: Progress, out: Path, say: Say) -> Progress:
    """The progress of the run in a directory.

    Args:
        config: the settings now.
        now: has the fingerprints of the texts now.
        out: the directory.
        say: told what is another.

    Raises:
        ValueError: there is no whole checkpoint, or it cannot be gone on from.
    """
    progress, before = read_progress(out / CHECKPOINT)
    check_resumable(before, config, say)
    if progress.text != now.text:
        raise ValueError(
            "Cannot resume: the training text is not that which the run was started with. Its "
            "files have other names, sizes or another order, or their words are made in "
            "another way. Put it back, or start a new run in another directory."
        )
    if progress.dev_text != now.dev_text:
        say("The held-out text is another one: the best model is looked for anew")
        progress.best, progress.dev_text = None, now.dev_text
    if not (out / BEST).exists():
        progress.best = None
    return progress


def _is_only_begun(out: Path) -> bool:
    """Whether a directory holds a run that was ended before it could write its checkpoint."""
    later = [BEST, LAST, *(path.name for path in out.glob(f"{Path(CHECKPOINT).stem}*"))]
    begun = any((out / name).exists() for name in (VOCAB, LAUNCH))
    return begun and not any((out / name).exists() for name in later)


def _check_new(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise ValueError(f"'{out}' is a file; give a directory for the run.")
    if (out / CHECKPOINT).exists():
        raise ValueError(
            f"'{out}' holds the checkpoint of another run; continue it with --resume, or choose "
            f"another directory."
        )
    found = [name for name in (BEST, LAST, CONFIG, VOCAB, TABLE, LOG) if (out / name).exists()]
    if found:
        raise ValueError(
            f"'{out}' holds {', '.join(found)} already, but no checkpoint, and a run would "
            f"write over them; choose another directory."
        )


def _log_until(entries: list[dict[str, Any]], step: int, max_steps: int) -> list[dict[str, Any]]:
    """Entries of steps that are not lost; the evaluation at the end will be done again."""
    return [
        entry
        for entry in entries
        if entry["step"] <= step and not ("model" in entry and entry["step"] >= max_steps)
    ]


def _survey(name: str, source: CorpusReader, config: PretrainConfig) -> CorpusStats:
    found = count_corpus(source.sentences(), config.corpus.max_words)
    if not found.n_sentences:
        files = ", ".join(f"'{file}'" for file in source.files()[:3])
        raise ValueError(f"There are no words in the {name} text: {files}.")
    return found


def _describe(
    found: CorpusStats, vocab: Vocabulary, config: PretrainConfig, table: RowIds | None
) -> str:
    max_characters = config.model.max_characters_per_token
    return found.describe(vocab, config.corpus.max_words, max_characters, table)
