"""The steps of a run: how many there are, and at which learning rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .checkpoint import Progress
from .config import TrainingSettings


@dataclass(frozen=True)
class Schedule:
    """Length of a run, and its learning rate at each step.

    Attributes:
        settings: [training]; ``warmup_steps``, ``decay_steps`` and ``head_first`` are shortened if
            the run is, and ``head_first`` to half of the run, so that the biLM learns too.
        n_steps: after so many it ends, or after so many epochs as the settings name.
    """

    settings: TrainingSettings
    n_steps: int

    @classmethod
    def plan(cls, settings: TrainingSettings, epoch_steps: int) -> Schedule:
        """The schedule of settings, shortened to the steps that ``max_epochs`` has.

        Args:
            settings: [training].
            epoch_steps: how many steps an epoch has, at most.
        """
        n_steps = settings.max_steps
        if settings.max_epochs:
            n_steps = min(n_steps, settings.max_epochs * epoch_steps)
        share = min(1.0, n_steps / max(1, settings.warmup_steps + settings.decay_steps))
        names = ("warmup_steps", "decay_steps", "head_first")
        shortened: dict[str, Any] = {name: int(share * getattr(settings, name)) for name in names}
        shortened["head_first"] = min(shortened["head_first"], n_steps // 2)
        return cls(replace(settings, **shortened), n_steps)

    def learning_rate(self, step: int) -> float:
        """The rate of a step: up over the warm-up, level, down to zero over the last steps."""
        up = (step + 1) / max(1, self.settings.warmup_steps)
        down = (self.n_steps - step) / max(1, self.settings.decay_steps)
        return self.settings.learning_rate * min(1.0, up, down)

    def has_ended(self, progress: Progress) -> bool:
        """Tell if the run has taken all its steps, or made all its passes over the text."""
        n_epochs = self.settings.max_epochs
        has_read_all = bool(n_epochs) and progress.position.epoch >= n_epochs
        return has_read_all or progress.step >= self.n_steps
