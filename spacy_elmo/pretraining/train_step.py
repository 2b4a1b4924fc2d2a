"""The steps of a run: how many there are, at which learning rates, and what one of them does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from ..bilm.model import BiLM, drop_out
from ..bilm.torch_precision import without_tf32
from ..lm.encoded_sentences import SentenceBatch
from ..lm.forward import hidden_states
from ..lm.softmax import Candidates, LogUniformSampler, SoftmaxHead
from ..lm.stream_state import StreamState
from ..util.threads import results_ahead
from .config import PretrainConfig, TrainingSettings
from .data.stats import CorpusStats
from .run.checkpoint import TrainingProgress
from .run.distributed import ProcessGroup


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
        if settings.state == "carried":
            batches = math.ceil(stats.n_segments / settings.n_streams)
        else:
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

    def has_read_all(self, progress: TrainingProgress) -> bool:
        """Tell if the run has made all its passes over the text."""
        n_epochs = self.settings.max_epochs
        return bool(n_epochs) and progress.position.epoch >= n_epochs

    def has_ended(self, progress: TrainingProgress) -> bool:
        """Tell if the run has taken all its steps, or made all its passes over the text."""
        return self.has_read_all(progress) or progress.step >= self.n_steps


class BiLMLoss(nn.Module):
    """Mean loss in nats of both directions over a batch (Peters et al. 2018, §3.1).

    Args:
        model: the biLM.
        head: its softmax.
        dropout: on the input of the head.
        streams: the states that sentences start from, replaced by those they end in; None for
            the biLM's own initial state.
        student: maps the layers of a token, concatenated, to its vector of the teacher, or None.
        teacher_weight: of its loss, the distance ``1 - cos`` per predicted word.
    """

    def __init__(
        self,
        model: BiLM,
        head: SoftmaxHead,
        dropout: float,
        streams: StreamState | None = None,
        student: nn.Linear | None = None,
        teacher_weight: float = 1.0,
    ):
        super().__init__()
        self.model = model
        self.head = head
        self.dropout = dropout
        self.generator: torch.Generator | None = None
        self.streams = streams
        self.student, self.teacher_weight = student, teacher_weight

    def forward(self, batch: SentenceBatch, candidates: Candidates | None) -> torch.Tensor:
        """The mean over the predictions of a batch; 0 if it has no sentence.

        Args:
            batch: on the biLM's device.
            candidates: of the sampled softmax, on the same device; None for the full one.

        Raises:
            ValueError: the teacher's vectors have another size than the first ones.
        """
        if not batch.lengths:  # every parameter still needs a gradient: other ranks wait for it
            zeros = [0 * p.sum() for p in self.parameters() if p.requires_grad]
            return torch.stack(zeros).sum()
        state = None if self.streams is None else self.streams.first(len(batch.lengths))
        read = hidden_states(self.model, batch, state)
        if self.streams is not None:
            self.streams.update(read.state)
        hidden = torch.cat([read.hidden_f, read.hidden_b])
        hidden = drop_out(hidden, self.dropout, self.generator)
        targets = torch.cat([read.targets_f, read.targets_b])
        if candidates is None:
            loss = self.head.loss(hidden, targets)
        else:
            loss = self.head.sampled_loss(hidden, targets, candidates)
        if self.student is None:
            return loss
        if batch.lessons is None:
            return loss + 0 * sum(p.sum() for p in self.student.parameters())
        vectors, tokens = batch.lessons
        if vectors.shape[1] != self.student.out_features:  # those of size 1 would be repeated
            raise ValueError(
                f"[training.teacher] gave vectors of the size {vectors.shape[1]}, and of the first "
                f"sentences of the text {self.student.out_features}; it must always be the same."
            )
        x = self.student(read.layers[:, tokens].transpose(0, 1).flatten(1))
        distance = (1 - F.cosine_similarity(x, vectors)).sum() / batch.n_predicted
        return loss + self.teacher_weight * distance

    def replica(self) -> BiLMLoss:
        """A copy for another thread: the same parameters in memory, with gradients and random
        numbers of its own."""
        memo: dict[int, Any] = {
            id(p): nn.Parameter(p.detach(), p.requires_grad) for p in self.parameters()
        }
        memo |= {
            id(shared): shared for shared in (*self.buffers(), self.model.token_encoder.to_ids)
        }
        copy = deepcopy(self, memo)
        copy.generator = copy.model.generator = torch.Generator()
        return copy


@dataclass(eq=False)
class TrainState:
    """State of a training run: all that its steps change.

    Attributes:
        model: the biLM.
        head: its softmax.
        settings: [training].
        group: the processes that train it.
        sampler: of candidates; None for the full softmax.
        streams, student: see `BiLMLoss`.
        progress: how far the run has come.
        n_threads: among which each batch is divided, if there is one process.
    """

    model: BiLM
    head: SoftmaxHead
    settings: TrainingSettings
    group: ProcessGroup
    sampler: LogUniformSampler | None = None
    streams: StreamState | None = None
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    student: nn.Linear | None = None
    n_threads: int = 1

    def __post_init__(self) -> None:
        settings, device = self.settings, self.group.device
        extra = (self.streams, self.student, settings.teacher_weight)
        self.loss = BiLMLoss(self.model.train(), self.head, settings.dropout, *extra).to(device)
        if self.sampler is not None:
            self.sampler = self.sampler.to(device)
        modules: dict[str, nn.Module | None] = {"bilm": self.model, "head": self.head}
        modules |= {"carried": self.streams, "teacher": self.student}
        # By their names in a checkpoint. Streams have no parameters.
        self.modules = {name: module for name, module in modules.items() if module is not None}
        self.parameters = [p for module in self.modules.values() for p in module.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, betas=(0.9, 0.99), fused=True)
        self._module: nn.Module = self.loss
        self._replicas: list[BiLMLoss] = []
        self._trains_bilm: bool | None = None

    def shares(self) -> list[tuple[int, int]]:
        """The shares of a batch that are read here, one for each thread; see `train_step`."""
        first, n = self.group.rank * self.n_threads, self.group.world_size * self.n_threads
        return [(first + i, n) for i in range(self.n_threads)]

    def modules_of_threads(self) -> tuple[nn.Module, list[BiLMLoss]]:
        """The loss as a module, of which the ranks average the gradients, and a replica for each
        further thread; with the biLM frozen in the steps in which only the head is trained."""
        trains_bilm = self.progress.step >= self.progress.head_first
        if trains_bilm != self._trains_bilm:
            self._trains_bilm = trains_bilm
            self.model.requires_grad_(trains_bilm)
            self._module = self.group.wrap(self.loss)
            self._replicas = [self.loss.replica() for _ in range(1, self.n_threads)]
        return self._module, self._replicas


def train_step(
    state: TrainState, parts: Sequence[SentenceBatch], learning_rate: float
) -> torch.Tensor:
    """One optimizer step: zero the gradients, forward and backward, clip, update.

    Each micro-batch counts by its share of the step's predictions, so it does not matter how
    the sentences of a step are divided among micro-batches, threads and ranks. A thread computes
    on one processor: products of a few hundred rows are too small to be divided themselves.

    Args:
        state: what is trained.
        parts: the shares of the first micro-batch of the step, see `TrainState.shares`; then those
            of the next.
        learning_rate: of the step.

    Returns:
        This rank's share of the mean loss, on the device; the shares of all ranks add up to it.
    """
    progress, settings, group = state.progress, state.settings, state.group
    # All random numbers of a step follow from its index, so that a resumed run draws the same;
    # ranks draw the same candidates, but use different dropout masks.
    rng = np.random.default_rng([settings.seed, progress.step])
    torch.manual_seed(int(rng.integers(2**31)) + group.rank)
    candidates = None if state.sampler is None else state.sampler.sample(rng)
    module, replicas = state.modules_of_threads()
    for i, replica in enumerate(replicas, start=1):
        if replica.generator is not None:
            replica.generator.manual_seed(torch.initial_seed() + i)
    modules: list[nn.Module] = [module, *replicas]
    micro_batches = parts[:: len(modules)]
    n_predicted = sum(part.total_predictions for part in micro_batches)

    def backward(thread: int) -> torch.Tensor:
        """The shares of one thread: their gradients in its module, and their part of the loss."""
        module, total = modules[thread], torch.zeros((), device=group.device)
        shares = parts[thread :: len(modules)]
        for number, part in enumerate(shares, start=1):
            # Ranks average their gradients once, with the last micro-batch.
            is_last = number == len(shares)
            with module.no_sync() if isinstance(module, DDP) and not is_last else nullcontext():
                with torch.autocast(total.device.type, torch.bfloat16, settings.mixed_precision):
                    mean = module(part.to(group.device), candidates)
                loss = mean * (part.n_predicted / n_predicted)
                with without_tf32(total.device):
                    (loss * group.world_size).backward()  # ranks contribute to a sum, not a mean
            total += loss.detach()
        return total

    for each in modules:
        each.zero_grad()
    results = results_ahead(backward, range(len(modules)), len(modules))
    total = torch.stack([result() for _, result in results]).sum()
    for replica in replicas:
        for parameter, copy in zip(module.parameters(), replica.parameters(), strict=True):
            if parameter.grad is not None and copy.grad is not None:
                parameter.grad += copy.grad
    torch.nn.utils.clip_grad_norm_(state.parameters, settings.max_grad_norm)
    state.optimizer.param_groups[0]["lr"] = learning_rate
    state.optimizer.step()

    progress.step += 1
    progress.words += sum(part.total_words for part in micro_batches)
    return total
