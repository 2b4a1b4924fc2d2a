"""The length of a run, and its learning rates."""

from __future__ import annotations

from .checkpoint import Progress
from .config import TrainingSettings

WARM_UP, DECAY = 1 / 20, 1 / 3


def run_length(settings: TrainingSettings, progress: Progress) -> int:
    """How many steps a run takes: ``max_steps``, or as many as ``max_epochs`` or ``minutes`` allow.

    Args:
        settings: [training].
        progress: how many steps an epoch has, and how long a step takes, once that is known.
    """
    n_steps = settings.max_steps
    if settings.max_epochs:
        n_steps = min(n_steps, settings.max_epochs * progress.epoch_steps)
    if settings.minutes and progress.step_seconds:
        n_steps = min(n_steps, int(60 * settings.minutes / progress.step_seconds))
    return n_steps


def learning_rate(settings: TrainingSettings, progress: Progress) -> float:
    """The learning rate of the next step: linear warm-up, then constant, then linear decay to zero.

    Warm-up and decay are shortened to fit into the run. A run of some minutes has `WARM_UP` and
    `DECAY` instead, shares of its steps.
    """
    n_steps = run_length(settings, progress)
    warm_up, decay = settings.warmup_steps, settings.decay_steps
    if settings.minutes:
        warm_up, decay = int(WARM_UP * n_steps), int(DECAY * n_steps)
    share = min(1.0, n_steps / max(1, warm_up + decay))
    up = (progress.step + 1) / max(1, int(share * warm_up))
    down = (n_steps - progress.step) / max(1, int(share * decay))
    return settings.learning_rate * min(1.0, up, down)


def has_ended(settings: TrainingSettings, progress: Progress) -> bool:
    """Tell if a run has taken all of its steps, or read all of its epochs."""
    has_read_all = 0 < settings.max_epochs <= progress.position.epoch
    return has_read_all or progress.step >= run_length(settings, progress)
