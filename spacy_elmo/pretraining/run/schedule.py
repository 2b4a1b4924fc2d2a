"""How long a run is, and what it learns at which rate."""

from __future__ import annotations

from dataclasses import replace

from ..config import PretrainConfig, TrainingSettings
from ..data.stats import CorpusStats
from .checkpoint import Progress


def steps_in_epoch(config: PretrainConfig, train: CorpusStats) -> int:
    """About how many steps one pass over the training text has."""
    return -(-_batches_in_epoch(config, train) // config.training.accumulate_gradient)


def _batches_in_epoch(config: PretrainConfig, train: CorpusStats) -> int:
    settings = config.training
    if settings.state == "carried":
        batches = -(-train.n_pieces // settings.n_streams)
    else:
        batches = -(-(train.n_words + 2 * train.n_pieces) // settings.batch_words)
    # The last batch of each buffer is a short one, too. Rather a step too many in the schedule
    # than text that is not read: a run ends where its last epoch does.
    n_buffers = -(-train.n_words // config.corpus.buffer_words)
    return batches + n_buffers - 1


def schedule(config: PretrainConfig, train: CorpusStats | None) -> TrainingSettings:
    """The settings for as many steps as the run is to have.

    Args:
        config: all settings.
        train: what is in the training text; it is needed where there is a `max_epochs`.
    """
    settings = config.training
    if not settings.max_epochs or train is None:
        return settings
    n_batches = settings.max_epochs * _batches_in_epoch(config, train)
    n_steps = min(settings.max_steps, -(-n_batches // settings.accumulate_gradient))
    share = min(1.0, n_steps / max(1, settings.warmup_steps + settings.decay_steps))
    return replace(
        settings,
        max_steps=n_steps,
        warmup_steps=int(share * settings.warmup_steps),
        decay_steps=int(share * settings.decay_steps),
        head_first=int(share * settings.head_first),
    )


def learning_rate(settings: TrainingSettings, step: int) -> float:
    """The rate of a step: up over the warm-up, level, down to zero over the last steps."""
    up = (step + 1) / max(1, settings.warmup_steps)
    down = (settings.max_steps - step) / max(1, settings.decay_steps)
    return settings.learning_rate * min(1.0, up, down)


def has_read(progress: Progress, training: TrainingSettings) -> bool:
    """Whether a run has read its text as often as it was to."""
    return bool(training.max_epochs) and progress.place.epoch >= training.max_epochs


def has_ended(progress: Progress, training: TrainingSettings) -> bool:
    """Whether a run has taken its steps, or read its text as often as it was to."""
    return has_read(progress, training) or progress.step >= training.max_steps
