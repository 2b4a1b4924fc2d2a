"""One step of a run: forward, backward, clip, update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ..bilm.torch_precision import without_tf32
from ..lm.encoded_sentences import SentenceBatch
from ..util.threads import results_ahead
from .checkpoint import State


def train_step(state: State, shares: Sequence[SentenceBatch], learning_rate: float) -> torch.Tensor:
    """One optimizer step: zero the gradients, forward and backward, clip, update.

    Each share counts by its part of the batch's predictions, so it does not matter how the
    sentences are divided among threads and ranks. A thread computes on one processor: products of
    a few hundred rows are too small to be divided themselves.

    Args:
        state: what is trained.
        shares: of the batch, see `State.shares`.
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

    def backward(thread: int) -> torch.Tensor:
        """The share of one thread: its gradients in its module, and its part of the loss."""
        share, device = shares[thread], group.device
        with torch.autocast(device.type, torch.bfloat16, settings.mixed_precision):
            mean = modules[thread](share.to(device), candidates)
        loss = mean * (share.n_predicted / share.total_predictions)
        with without_tf32(device):
            (loss * group.world_size).backward()  # ranks contribute to a sum, not a mean
        return loss.detach()

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
    progress.words += shares[0].total_words
    return total
