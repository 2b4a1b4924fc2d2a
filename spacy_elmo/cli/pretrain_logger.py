"""What a pretraining logs, told to a logger of spaCy's registry."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confection import Config
from spacy.language import Language

from ..pretraining.config import PretrainConfig


@contextmanager
def followed_by(setup: Any, config: PretrainConfig) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that takes entries of the log, and tells them to a logger.

    The logger sees what it sees in ``spacy train``: at each evaluation a dictionary with the
    ``step``, ``epoch`` and number of ``words``; the mean loss since the one before under
    ``losses``; the perplexities under ``other_scores``; and a ``score``, higher being better: the
    mean perplexity, negative. In each step between, None. Its pipeline is empty and has the
    config of the pretraining.

    Args:
        setup: what the registered function returned.
        config: of the run.
    """
    nlp = Language()
    data = config.to_dict()
    data["training"] |= {"eval_frequency": config.training.eval_every, "score_weights": {}}
    nlp.config = Config(data)
    log_step, finalize = setup(nlp, sys.stdout, sys.stderr)
    losses: list[float] = []
    checkpoints: list[tuple[float, int]] = []
    seen = {"epoch": 0, "words": 0, "seconds": 0, "step": 0}

    def tell(entry: dict[str, Any]) -> None:
        if "model" in entry:  # of the table at the end
            return
        if "loss" in entry:
            losses.append(entry["loss"])
            for _ in range(entry["step"] - seen["step"]):
                log_step(None)
        seen.update((name, entry[name]) for name in seen if name in entry)
        if "mean" in entry:
            checkpoints.append((-entry["mean"], entry["step"]))
            names = ("mean", "forward", "backward")
            log_step(
                {
                    **seen,
                    "score": -entry["mean"],
                    "other_scores": {f"perplexity_{name}": entry[name] for name in names},
                    "losses": {"bilm": sum(losses) / max(1, len(losses))},
                    "checkpoints": list(checkpoints),
                }
            )
            losses.clear()

    try:
        yield tell
    finally:
        finalize()
