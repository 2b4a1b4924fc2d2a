"""The steps of a run: how many there are, and at which learning rates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from .config import PretrainConfig, TrainingSettings
from .state import Progress
from .stats import CorpusStats


@dataclass(frozen=True)
class Schedule:
    """Length of a run, and its learning rate at each step.

    Attributes:
        settings: [training]; ``warmup_steps``, ``decay_steps`` and ``head_first`` are shortened if
            the run is.
        n_steps: after so many it ends, or after so many epochs as the settings name.
        epoch_steps: about how many steps an epoch has; None if the text was not counted.
    """

    settings: TrainingSettings
    n_steps: int
    epoch_steps: int | None = None

    @classmethod
    def plan(cls, config: PretrainConfig, stats: CorpusStats | None) -> Schedule:
        """The schedule of a config, shortened to the steps that ``max_epochs`` has.

        Args:
            config: all settings.
            stats: of the training text; needed if there is a ``max_epochs``.
        """
        settings, n_steps = config.training, config.training.max_steps
        if stats is None:
            return cls(settings, n_steps)
        batches = math.ceil((stats.n_words + 2 * stats.n_segments) / settings.batch_words)
        # The last batch of each buffer is shorter. Better a step too many in the schedule than text
        # that is not read: a run ends with its last epoch.
        batches += math.ceil(stats.n_words / config.corpus.buffer_words) - 1
        epoch_steps = math.ceil(batches / settings.accumulate_gradient)
        if settings.max_epochs:
            n_batches = batches * settings.max_epochs
            n_steps = min(n_steps, math.ceil(n_batches / settings.accumulate_gradient))
        share = min(1.0, n_steps / max(1, settings.warmup_steps + settings.decay_steps))
        names = ("warmup_steps", "decay_steps", "head_first")
        shortened: dict[str, Any] = {name: int(share * getattr(settings, name)) for name in names}
        return cls(replace(settings, **shortened), n_steps, epoch_steps)

    def learning_rate(self, step: int) -> float:
        """The rate of a step: up over the warm-up, level, down to zero over the last steps."""
        up = (step + 1) / max(1, self.settings.warmup_steps)
        down = (self.n_steps - step) / max(1, self.settings.decay_steps)
        return self.settings.learning_rate * min(1.0, up, down)

    def has_read_all(self, progress: Progress) -> bool:
        """Tell if the run has made all its passes over the text."""
        n_epochs = self.settings.max_epochs
        return bool(n_epochs) and progress.position.epoch >= n_epochs

    def has_ended(self, progress: Progress) -> bool:
        """Tell if the run has taken all its steps, or made all its passes over the text."""
        return self.has_read_all(progress) or progress.step >= self.n_steps
