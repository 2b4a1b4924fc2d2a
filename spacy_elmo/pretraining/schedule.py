"""The length of a run, and its learning rates."""

from __future__ import annotations

from .checkpoint import Progress
from .config import TrainingSettings


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

    Warm-up and decay are shortened as the run is, and to fit into it.
    """
    n_steps = run_length(settings, progress)
    share = n_steps / max(settings.max_steps, settings.warmup_steps + settings.decay_steps)
    up = (progress.step + 1) / max(1, int(share * settings.warmup_steps))
    down = (n_steps - progress.step) / max(1, int(share * settings.decay_steps))
    return settings.learning_rate * min(1.0, up, down)


def has_ended(settings: TrainingSettings, progress: Progress) -> bool:
    """Tell if a run has taken all of its steps, or read all of its epochs."""
    has_read_all = 0 < settings.max_epochs <= progress.position.epoch
    return has_read_all or progress.step >= run_length(settings, progress)
