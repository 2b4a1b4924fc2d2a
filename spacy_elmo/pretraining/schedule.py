"""The length of a run, and its learning rates."""

from __future__ import annotations

from dataclasses import replace

from .checkpoint import Progress
from .config import TrainingSettings


def fit_to_epochs(settings: TrainingSettings, epoch_steps: int) -> TrainingSettings:
    """Shorten ``max_steps`` to ``max_epochs``, and warm-up, decay and ``head_first`` to the run.

    ``head_first`` is at most half of the run, so that the biLM learns too.

    Args:
        settings: [training].
        epoch_steps: the number of steps in an epoch, or a few more.
    """
    n_steps = settings.max_steps
    if settings.max_epochs:
        n_steps = min(n_steps, settings.max_epochs * epoch_steps)
    share = min(1.0, n_steps / max(1, settings.warmup_steps + settings.decay_steps))
    return replace(
        settings,
        max_steps=n_steps,
        warmup_steps=int(share * settings.warmup_steps),
        decay_steps=int(share * settings.decay_steps),
        head_first=min(int(share * settings.head_first), n_steps // 2),
    )


def learning_rate(settings: TrainingSettings, step: int) -> float:
    """The learning rate: linear warm-up, then constant, then linear decay to zero."""
    up = (step + 1) / max(1, settings.warmup_steps)
    down = (settings.max_steps - step) / max(1, settings.decay_steps)
    return settings.learning_rate * min(1.0, up, down)


def has_ended(settings: TrainingSettings, progress: Progress) -> bool:
    """Tell if a run has taken all of its steps, or read all of its epochs."""
    has_read_all = 0 < settings.max_epochs <= progress.position.epoch
    return has_read_all or progress.step >= settings.max_steps
