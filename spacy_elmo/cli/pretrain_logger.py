"""What a pretraining logs, told to a logger of spaCy's registry."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from confection import Config
from spacy.language import Language

from ..pretraining.config import PretrainConfig
from ..pretraining.run.log import Follow


class Follower:
    """Takes the entries of a run's log, and tells them to a logger; a context that it ends with.

    The logger sees what it sees in ``spacy train``: at each evaluation a dictionary with the
    ``step``, ``epoch`` and number of ``words``; the mean loss since the evaluation before, or the
    last one known, under ``losses``; the perplexities under ``other_scores``; and a ``score``,
    higher being better: the mean perplexity, negative. At each other step, None. Its pipeline is
    empty and has the config of the pretraining.

    Args:
        setup: what the registered function returned; it is called here.
        config: of the run.
        before: entries that the log has already.
    """

    def __init__(self, setup: Any, config: PretrainConfig, before: list[dict[str, Any]]):
        nlp = Language()
        data = config.to_dict()
        data["training"] |= {"eval_frequency": config.training.eval_every, "score_weights": {}}
        nlp.config = Config(data)
        self.seen = {"epoch": 0, "words": 0, "seconds": 0.0, "step": 0}
        self.losses: list[float] = []
        self.last_loss: dict[str, float] = {}
        self.checkpoints: list[tuple[float, int]] = []
        self.is_step_open = False
        self.log_step: Callable[[dict[str, Any] | None], None] = lambda info: None
        for entry in before:
            self.tell(entry)
        self.log_step, self.finalize = setup(nlp, sys.stdout, sys.stderr)

    def __enter__(self) -> Follow:
        return self.tell

    def __exit__(self, *error: object) -> None:
        self._end_step()
        self.finalize()

    def tell(self, entry: dict[str, Any]) -> None:
        """Take an entry, or a step as an entry of its number alone."""
        if "model" in entry:  # of the table at the end
            return
        self.seen.update((name, entry[name]) for name in self.seen if name in entry)
        if "loss" in entry:
            self.losses.append(entry["loss"])
            self.last_loss = {"bilm": sum(self.losses) / len(self.losses)}
        elif "mean" in entry:
            self.is_step_open = False
            self.checkpoints.append((-entry["mean"], entry["step"]))
            names = ("mean", "forward", "backward")
            info = {
                **self.seen,
                "score": -entry["mean"],
                "other_scores": {f"perplexity_{name}": entry[name] for name in names},
                "losses": self.last_loss,
                "checkpoints": list(self.checkpoints),
            }
            self.losses.clear()
            self.log_step(info)
        else:
            self._end_step()
            self.is_step_open = True

    def _end_step(self) -> None:
        """There was no evaluation at the step before."""
        if self.is_step_open:
            self.log_step(None)
        self.is_step_open = False
