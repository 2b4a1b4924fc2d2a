"""One step of a run: forward, backward, clip, update."""

from __future__ import annotations

import numpy as np
import torch

from ..bilm.torch_precision import without_tf32
from ..util.threads import prefetch_map
from .checkpoint import State
from .config import TrainingSettings
from .corpus import TrainingBatch


def train_step(
    state: State, settings: TrainingSettings, batch: TrainingBatch, learning_rate: float
) -> torch.Tensor:
    """Take one optimizer step.

    Each thread computes the gradients of its share of the batch. They are added up over threads
    and processes, and a share counts by its predictions, so the division changes nothing.

    Args:
        state: what is trained.
        settings: [training].
        batch: a share for each of the modules in ``state``.
        learning_rate: the learning rate of this step.

    Returns:
        This process's part of the mean loss, on the device. The parts of all processes add up.
    """
    progress, device = state.progress, state.group.device
    # The seed and the step decide all random numbers, so that a resumed run draws the same.
    # Processes draw the same candidates, but different dropout masks.
    rng = np.random.default_rng([settings.seed, progress.step])
    torch.manual_seed(int(rng.integers(2**31)) + state.group.rank)
    candidates = None if state.sampler is None else state.sampler.sample(rng)
    # Steps that are timed train all, as most others will.
    is_timed = settings.minutes > 0 and not progress.step_seconds
    for i, module in enumerate(state.modules):
        module.model.requires_grad_(is_timed or progress.step >= progress.head_first)
        module.zero_grad()
        if module.model.generator is not None:
            module.model.generator.manual_seed(torch.initial_seed() + i)

    def backward(i: int) -> torch.Tensor:
        share, targets = batch.shares[i], batch.teacher_targets[i]
        if not share.lengths:
            return torch.zeros((), device=device)
        with torch.autocast(device.type, torch.bfloat16, settings.mixed_precision):
            mean = state.modules[i](share.to(device), candidates, targets)
        loss = mean * (share.n_predicted / batch.n_predicted)
        with without_tf32(device):
            loss.backward()
        return loss.detach()

    # Each thread computes on one processor: products of a few hundred rows are too small to divide.
    n_threads = len(state.modules)
    results = prefetch_map(backward, range(n_threads), n_threads)
    total = torch.stack([result() for _, result in results]).sum()
    gradients = []
    for first, *others in zip(*(module.parameters() for module in state.modules), strict=True):
        if first.requires_grad:
            first.grad = torch.zeros_like(first) if first.grad is None else first.grad
            for other in others:
                first.grad += 0 if other.grad is None else other.grad
            gradients.append(first.grad)
    state.group.all_reduce(*gradients)
    torch.nn.utils.clip_grad_norm_(state.parameters, settings.max_grad_norm)
    state.optimizer.param_groups[0]["lr"] = learning_rate
    state.optimizer.step()

    progress.step += 1
    progress.words += batch.n_words
    return total
