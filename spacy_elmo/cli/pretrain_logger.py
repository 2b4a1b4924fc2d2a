"""What a pretraining run logs, passed on to a logger of spaCy's registry."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from confection import Config
from spacy.language import Language

from ..pretraining.config import PretrainConfig


class SpacyLogger:
    """Passes the entries of a run's log on to a logger; a context that ends with it.

    The logger receives what it receives in ``spacy train``: at each evaluation a dictionary with
    the ``step``, ``epoch`` and number of ``words``; under ``losses`` the mean loss since the
    previous evaluation, or the last one known; under ``other_scores`` the perplexities; and a
    ``score``, the negative mean perplexity. At each other step, None. Its pipeline is empty and
    has the config of the run.

    Args:
        setup: what the registered function returned; it is called here.
        config: of the run.
        entries: those that the log has already.
    """

    def __init__(self, setup: Any, config: PretrainConfig, entries: list[dict[str, Any]]):
        nlp = Language()
        data = config.to_dict()
        data["training"] |= {"eval_frequency": config.training.eval_every, "score_weights": {}}
        nlp.config = Config(data)
        self.state = {"epoch": 0, "words": 0, "seconds": 0.0, "step": 0}
        self.losses: list[float] = []
        self.mean_loss: dict[str, float] = {}
        self.checkpoints: list[tuple[float, int]] = []
        self.is_step_open = False
        self.log_step: Callable[[dict[str, Any] | None], None] = lambda info: None
        for entry in entries:
            self.receive(entry)
        self.log_step, self.finalize = setup(nlp, sys.stdout, sys.stderr)

    def __enter__(self) -> Callable[[dict[str, Any]], None]:
        return self.receive

    def __exit__(self, *error: object) -> None:
        self._end_step()
        self.finalize()

    def receive(self, entry: dict[str, Any]) -> None:
        """Take an entry, or a step as an entry with its number only."""
        if "model" in entry:  # of the final table
            return
        self.state.update((name, entry[name]) for name in self.state if name in entry)
        if "loss" in entry:
            self.losses.append(entry["loss"])
            self.mean_loss = {"bilm": sum(self.losses) / len(self.losses)}
        elif "mean" in entry:
            self.is_step_open = False
            self.losses.clear()
            self.checkpoints.append((-entry["mean"], entry["step"]))
            names = ("mean", "forward", "backward")
            info = {
                **self.state,
                "score": -entry["mean"],
                "other_scores": {f"perplexity_{name}": entry[name] for name in names},
                "losses": self.mean_loss,
                "checkpoints": list(self.checkpoints),
            }
            self.log_step(info)
        else:
            self._end_step()
            self.is_step_open = True

    def _end_step(self) -> None:
        """Log the previous step, if there was no evaluation at it."""
        if self.is_step_open:
            self.log_step(None)
        self.is_step_open = False
