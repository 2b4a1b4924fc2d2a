"""How long a run is, and its learning rate at each step."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import PretrainConfig
from ..data.stats import CorpusStats
from .checkpoint import Progress


@dataclass(frozen=True)
class Schedule:
    """The steps of a run.

    Attributes:
        n_steps: after so many it ends.
        n_epochs: or after so many passes over the text; 0: no such limit.
        peak_rate: the highest learning rate.
        warmup_steps, decay_steps: first and last steps, in which the rate rises and falls.
        head_first: steps in which a new head alone is trained.
        epoch_steps: about how many steps an epoch has; None if the text was not counted.
    """

    n_steps: int
    n_epochs: int
    peak_rate: float
    warmup_steps: int
    decay_steps: int
    head_first: int
    epoch_steps: int | None = None

    @classmethod
    def plan(cls, config: PretrainConfig, stats: CorpusStats | None) -> Schedule:
        """The schedule of a config, shortened to the steps that ``max_epochs`` has.

        Args:
            config: all settings.
            stats: of the training text; needed if there is a ``max_epochs``.
        """
        settings, n_steps, share, epoch_steps = (
            config.training,
            config.training.max_steps,
            1.0,
            None,
        )
        if stats is not None:
            n_batches = _batches_per_epoch(config, stats)
            epoch_steps = -(-n_batches // settings.accumulate_gradient)
            if settings.max_epochs:
                n_batches *= settings.max_epochs
                n_steps = min(n_steps, -(-n_batches // settings.accumulate_gradient))
                share = min(1.0, n_steps / max(1, settings.warmup_steps + settings.decay_steps))
        return cls(
            n_steps=n_steps,
            n_epochs=settings.max_epochs,
            peak_rate=settings.learning_rate,
            warmup_steps=int(share * settings.warmup_steps),
            decay_steps=int(share * settings.decay_steps),
            head_first=int(share * settings.head_first),
            epoch_steps=epoch_steps,
        )

    def learning_rate(self, step: int) -> float:
        """The rate of a step: up over the warm-up, level, down to zero over the last steps."""
        up = (step + 1) / max(1, self.warmup_steps)
        down = (self.n_steps - step) / max(1, self.decay_steps)
        return self.peak_rate * min(1.0, up, down)

    def has_read_all(self, progress: Progress) -> bool:
        """Whether the run has made all its passes over the text."""
        return bool(self.n_epochs) and progress.position.epoch >= self.n_epochs

    def has_ended(self, progress: Progress) -> bool:
        """Whether the run has taken all its steps, or made all its passes over the text."""
        return self.has_read_all(progress) or progress.step >= self.n_steps


def _batches_per_epoch(config: PretrainConfig, stats: CorpusStats) -> int:
    settings = config.training
    if settings.state == "carried":
        batches = -(-stats.n_segments // settings.n_streams)
    else:
        batches = -(-(stats.n_words + 2 * stats.n_segments) // settings.batch_words)
    # The last batch of each buffer is shorter. Better a step too many in the schedule than text
    # that is not read: a run ends with its last epoch.
    n_buffers = -(-stats.n_words // config.corpus.buffer_words)
    return batches + n_buffers - 1
