"""One step of a run: forward, backward, clip, update."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ..bilm.torch_precision import without_tf32
from ..lm.encoded_sentences import SentenceBatch
from ..util.threads import results_ahead
from .state import State


def train_step(state: State, parts: Sequence[SentenceBatch], learning_rate: float) -> torch.Tensor:
    """One optimizer step: zero the gradients, forward and backward, clip, update.

    Each micro-batch counts by its share of the step's predictions, so it does not matter how
    the sentences of a step are divided among micro-batches, threads and ranks. A thread computes
    on one processor: products of a few hundred rows are too small to be divided themselves.

    Args:
        state: what is trained.
        parts: the shares of the first micro-batch of the step, see `State.shares`; then those
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
