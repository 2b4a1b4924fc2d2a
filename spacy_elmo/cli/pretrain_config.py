"""The config of a pretraining run as spaCy reads configs, and what it names; its logger."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from confection import Config
from spacy.language import Language
from spacy.util import load_config, registry

from ..pretraining.config import Notify, PretrainConfig, build_config, override, split_overrides
from ..pretraining.run.log import Entries, Follow
from ..util.files import read_json, reading
from .vectors import read_vectors


def read_spacy_config(
    path: Path, arguments: Sequence[str] = (), resumed: Path | None = None
) -> PretrainConfig:
    """Read a config and override its settings.

    Args:
        path: a spaCy config, ``-`` for the standard input; or the JSON file of a run.
        arguments: overrides, ``--section.name value``; they win over those of the environment
            variable SPACY_CONFIG_OVERRIDES.
        resumed: directory of a run to resume; see `build_config`.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    variable = shlex.split(os.environ.get("SPACY_CONFIG_OVERRIDES", ""))
    overrides, others = split_overrides([*variable, *arguments])
    if others:
        raise ValueError(
            f"Unknown argument '{others[0]}'; after CONFIG and OUT, override settings of the "
            f"config as --section.name value."
        )
    with reading("the config", str(path)):  # which may be a pipe
        data: Any = read_json(path) if path.suffix == ".json" else load_config(path)
    override(data, overrides)
    with reading("the config", str(path)):
        data = Config(data).interpolate()
    return replace(build_config(data, resumed), make=make_named)


def make_named(name: str, value: Any, notify: Notify) -> Any:
    """Make what a setting names: the word vectors of a pipeline, or what a block registers.

    Raises:
        ValueError: the word vectors cannot be read; or a function is not registered, or its
            settings are wrong.
    """
    if name == "paths.vectors":
        return read_vectors(value, notify)
    try:
        made = registry.resolve({"block": value})["block"]
    except (ValueError, TypeError, ImportError) as error:
        raise ValueError(f"Config: [{name}] cannot be made. {str(error).strip()}") from error
    return partial(SpacyLogger, made) if name == "training.logger" else made


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
