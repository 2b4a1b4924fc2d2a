"""What a run trains: the biLM and its head, with all that a step of them needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ...bilm.files import atomic_directory
from ...bilm.find import load_bilm
from ...bilm.layout import Card
from ...bilm.model import BiLM, compute_warm_state
from ...bilm.weights import save_bilm
from ...lm.batches import Batch
from ...lm.head import load_head, save_head
from ...lm.perplexity import Perplexity, evaluate
from ...lm.softmax import SoftmaxHead
from ...lm.stream_state import StreamState
from ..learner import Learner
from ..loss import BiLMLoss
from .checkpoint import CHECKPOINT, keep_checkpoint, load_checkpoint, save_checkpoint
from .distributed import Processes
from .setup import Prepared


class Trainee:
    """The biLM and its head with random numbers to begin with, their optimizer, and their files.

    Args:
        run: what `prepare` found; its ``progress`` is counted on.
        group: the processes that train it.
        out: directory of the run.
    """

    def __init__(self, run: Prepared, group: Processes, out: Path):
        self.run, self.group, self.out = run, group, out
        config, settings, device = run.config, run.training, group.device
        torch.manual_seed(settings.seed)
        model = BiLM(config.model, settings.dropout)
        if run.table is not None:
            model.word_vectors.fill(run.table, learns=settings.train_vectors)
        self.model = model.to(device).train()
        self.head = SoftmaxHead(len(run.vocab), config.model.projection_dim).to(device)
        self.modules: dict[str, nn.Module] = {"bilm": self.model, "head": self.head}
        self.sampler = run.sampler.to(device) if run.sampler is not None else None
        self.carried: StreamState | None = None
        if settings.state == "carried":
            self.modules["carried"] = self.carried = StreamState(config.model, settings.n_streams)
            self.carried.to(device)
            self.model.set_warm_state(self.carried.of(1))
        self.parameters = [*self.model.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, betas=(0.9, 0.99), fused=True)
        loss = BiLMLoss(self.model, self.head, settings.dropout, self.carried)
        self.learner = Learner(loss, group, settings.mixed_precision)

    def describe(self) -> str:
        """Its size, and where it is trained."""
        modules = (self.model, self.head)
        sizes = [sum(p.numel() for p in module.parameters()) / 1e6 for module in modules]
        several = f", {self.group.count} processes" if self.group.count > 1 else ""
        where = f"{self.group.device}{several}"
        return f"{sizes[0]:.1f} M parameters, and {sizes[1]:.1f} M of the head; {where}"

    def load(self) -> None:
        """Take the numbers of the checkpoint or of the biLM that the run goes on from, if any.

        Raises:
            ValueError: they are missing or damaged.
        """
        run, device, progress = self.run, self.group.device, self.run.progress
        if run.resumed:
            load_checkpoint(self.out / CHECKPOINT, self.modules, self.optimizer, device)
        elif run.config.paths.weights is not None:
            start = load_bilm(run.config.paths.weights).to(device)
            copy_parameters(start, self.model)
            if not progress.held:  # the head goes on too
                head, _ = load_head(run.config.paths.weights)
                copy_parameters(head.to(device), self.head)
                if self.group.is_first:
                    progress.before = asdict(evaluate(start, self.head, run.dev))

    def step(self, parts: Sequence[Batch], rate: float) -> torch.Tensor:
        """Learn from the batches of a step.

        Args:
            parts: the batches, or this process's shares of them.
            rate: the learning rate.

        Returns:
            This process's share of the mean loss.
        """
        settings, progress = self.run.training, self.run.progress
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if progress.held:
            self.learner.hold(progress.step < progress.held)
        # All randomness of a step follows from its number, so a resumed run has the same, and so
        # do all processes; only what drops out differs from one to the other.
        rng = np.random.default_rng([settings.seed, progress.step])
        torch.manual_seed(int(rng.integers(2**31)) + self.group.rank)
        candidates = self.sampler.sample(rng) if self.sampler is not None else None
        self.optimizer.zero_grad()
        loss = self.learner.backward(parts, candidates)
        torch.nn.utils.clip_grad_norm_(self.parameters, settings.max_grad_norm)
        self.optimizer.step()
        progress.step += 1
        progress.words += sum(part.totals[0] for part in parts)
        return loss

    def warm_up(self) -> None:
        """Let the biLM know its warm state, if it is trained with a carried one."""
        if self.carried is not None:
            self.model.set_warm_state(compute_warm_state(self.model, self.run.passage))

    def evaluate(self) -> Perplexity:
        """Its perplexity on as much of the held-out text as the settings say.

        Raises:
            ValueError: a weight is not finite.
        """
        check_finite(self.parameters, self.run.progress.step)
        self.warm_up()
        return evaluate(self.model, self.head, self.run.dev, max_words=self.run.training.eval_words)

    def write_model(self, name: str) -> None:
        """Write the weights as a pipeline takes them, to a directory of the run's.

        Raises:
            ValueError: a weight is not finite; what was there stays.
        """
        check_finite(self.parameters, self.run.progress.step)
        with atomic_directory(self.out / name) as directory:
            save_bilm(self.model, directory, Card(**self.run.progress.card))
            save_head(self.head, self.run.vocab, directory)

    def write_checkpoint(self) -> None:
        """Write all that is needed to go on from here.

        Raises:
            ValueError: a weight is not finite; the last checkpoint stays.
        """
        progress, path = self.run.progress, self.out / CHECKPOINT
        check_finite(self.parameters, progress.step)
        save_checkpoint(path, progress, self.run.config.to_dict(), self.modules, self.optimizer)
        if progress.step:
            keep_checkpoint(path, progress.step, self.run.training.keep_checkpoints)


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Give a module the numbers of another of the same shape."""
    numbers = source.state_dict()  # what learns in the one may not learn in the other
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(numbers[name])


def check_finite(tensors: Sequence[torch.Tensor], step: int) -> None:
    """Raise a ValueError if a loss or a weight is infinite or NaN."""
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors):
        raise ValueError(
            f"The loss or a weight is not finite at step {step:,}. The checkpoint and the models "
            f"written before stay as they are: go on from them with --resume and a lower "
            f"--training.learning_rate, or start anew with one."
        )
