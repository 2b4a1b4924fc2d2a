"""Perplexities of a run: of the state that it is in, and of the models that it has written."""

from __future__ import annotations

import filecmp

import torch

from ...bilm.warm_state import compute_warm_state
from ...lm.head import load_head
from ...lm.perplexity import Perplexity, evaluate
from ...weights.find import load_bilm
from ...weights.layout import HEAD, WEIGHTS
from ...weights.native import save_statistics
from ...weights.statistics import compute_statistics
from ..train_step import TrainState
from .machine import matmul_precision
from .prepare_run import Run
from .starting_point import BEST, LAST
from .train_state import check_finite

# Whatever the precision in training: evaluations are compared.
at_the_highest_precision = matmul_precision("highest")


@at_the_highest_precision
def update_warm_state(state: TrainState, run: Run) -> None:
    """Set the biLM's warm state, if it is trained with stream states."""
    if state.streams is not None:
        state.model.set_warm_state(compute_warm_state(state.model, run.warm_up_text))


@at_the_highest_precision
def evaluate_state(state: TrainState, run: Run) -> Perplexity:
    """Perplexity on the held-out text, or on the part of it that the settings name.

    Raises:
        ValueError: a weight is not finite.
    """
    check_finite(state.parameters, state.progress.step)
    update_warm_state(state, run)
    return evaluate(state.model, state.head, run.dev, max_words=state.settings.eval_words)


@at_the_highest_precision
def evaluate_models(run: Run, device: torch.device) -> dict[str, Perplexity]:
    """Perplexities on the whole held-out text of a run's models, as they are on disk.

    Statistics of the text are added to them.
    """
    results: dict[str, Perplexity] = {}
    best, last = run.out / BEST, run.out / LAST
    for path in filter(lambda path: path.exists(), (best, last)):
        model = load_bilm(path).to(device)
        if results and all(
            filecmp.cmp(best / name, last / name, shallow=False) for name in (WEIGHTS, HEAD)
        ):
            results[LAST] = results[BEST]
        else:
            head, _ = load_head(path)
            results[path.name] = evaluate(model, head.to(device), run.dev)
        save_statistics(compute_statistics(model, run.dev), path)
    return results
