"""The log of a pretraining run, passed on to a logger of spaCy's registry."""

from __future__ import annotations

import sys
from typing import Any

from confection import Config
from spacy.language import Language

from ..pretraining.config import Entries, Follow, PretrainConfig


class SpacyLogger:
    """Passes the steps of a run on to a logger; a context that ends with it.

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

    def __init__(self, setup: Any, config: PretrainConfig, entries: Entries):
        nlp = Language()
        data = config.to_dict()
        data["training"] |= {"eval_frequency": config.training.eval_every, "score_weights": {}}
        nlp.config = Config(data)
        self.state = {"epoch": 0, "words": 0, "seconds": 0.0, "step": 0}
        self.losses: list[float] = []
        self.mean_loss: dict[str, float] = {}
        self.checkpoints: list[tuple[float, int]] = []
        self._info(entries)
        self.log_step, self.finalize = setup(nlp, sys.stdout, sys.stderr)

    def __enter__(self) -> Follow:
        return lambda entries: self.log_step(self._info(entries))

    def __exit__(self, *error: object) -> None:
        self.finalize()

    def _info(self, entries: Entries) -> dict[str, Any] | None:
        """Return what is logged of the last evaluation in some entries; None if there is none."""
        info = None
        for entry in entries:
            if "model" in entry:  # of the final table
                continue
            self.state.update((name, entry[name]) for name in self.state if name in entry)
            if "loss" in entry:
                self.losses.append(entry["loss"])
                self.mean_loss = {"bilm": sum(self.losses) / len(self.losses)}
            else:
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
        return info
