"""What the models of a run are worth, and how it is told."""

from __future__ import annotations

import filecmp
from pathlib import Path

import torch

from ...bilm.find import load_bilm
from ...bilm.weights import HEAD, WEIGHTS
from ...lm.batches import EncodedSentences
from ...lm.head import load_head
from ...lm.perplexity import Perplexity, evaluate
from .setup import BEST, LAST


def evaluate_models(
    out: Path, dev: EncodedSentences, device: torch.device
) -> dict[str, Perplexity]:
    """Perplexities over the whole dev text of a run's models, as they are on disk."""
    results: dict[str, Perplexity] = {}
    for name in (BEST, LAST):
        if not (out / name).exists():
            continue
        if BEST in results and all(
            filecmp.cmp(out / BEST / file, out / LAST / file, shallow=False)
            for file in (WEIGHTS, HEAD)
        ):
            results[name] = results[BEST]  # the last model is the best
        else:
            head, _ = load_head(out / name)
            results[name] = evaluate(load_bilm(out / name).to(device), head.to(device), dev)
    return results


def describe(result: Perplexity) -> str:
    """One line on a perplexity."""
    return (
        f"perplexity {result.mean:.1f} (forward {result.forward:.1f}, backward "
        f"{result.backward:.1f}), {result.unknown_rate:.2%} <UNK>"
    )


def entry(result: Perplexity) -> dict[str, float]:
    """What the log says of a perplexity."""
    return {"forward": result.forward, "backward": result.backward, "mean": result.mean}


def table(results: dict[str, Perplexity]) -> str:
    """A line of perplexities for each model."""
    titles = ("forward", "backward", "mean", "words", "<UNK>")
    lines = ["{:<12}{:>10}{:>10}{:>10}{:>12}{:>8}".format("perplexity", *titles)]
    for name, result in results.items():
        lines.append(
            f"{name:<12}{result.forward:>10.2f}{result.backward:>10.2f}{result.mean:>10.2f}"
            f"{result.n_predicted:>12,}{result.unknown_rate:>8.2%}"
        )
    return "\n".join(lines)
