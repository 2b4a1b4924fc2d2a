"""What a run says: messages and progress on the terminal, its log, and what loggers receive.

The log has a JSON object per line, each with the step after which it was written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confection import Config
from spacy.language import Language

from ..util.files import reading, write_text
from ..util.progress import ProgressBar
from .config import PretrainConfig, make_block

LOG = "log.jsonl"
Entries = list[dict[str, Any]]  # of a log
LogStep = Callable[[dict[str, Any] | None], object]  # of spaCy's loggers: called after each step


def find_log(path: Path) -> Path:
    """The log of a run, from its directory or from the log itself; it need not exist."""
    return path if path.is_file() else path / LOG


def read_log(path: Path) -> Entries:
    """The entries of a log; none if it is missing. An incomplete last line is left out.

    Raises:
        ValueError: another line is not an entry.
    """
    if not path.exists():
        return []
    with reading("the log", path):
        lines = path.read_text(encoding="utf-8").splitlines()
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            entry["step"] + 0
        except (ValueError, KeyError, TypeError, RecursionError):
            if number == len(lines):
                break  # the run was killed while it wrote this
            raise ValueError(f"Line {number} of the log {path} is not an entry: {line}") from None
        entries.append(entry)
    return entries


class Log:
    """The entries of a log, in memory and in a file.

    Args:
        path: the file; None for none.
        entries: those that it begins with.
    """

    def __init__(self, path: Path | None, entries: Entries):
        self.path, self.entries = path, [*entries]
        if path is not None:
            write_text(path, "".join(json.dumps(entry) + "\n" for entry in entries))

    def write(self, **entry: Any) -> None:
        """Write an entry."""
        self.entries.append(entry)
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8", newline="\n") as file:
                print(json.dumps(entry), file=file)

    def last_evaluation(self) -> dict[str, Any]:
        """What spaCy's loggers receive of the last evaluation: as in ``spacy train`` the ``step``,
        ``epoch``, ``words`` and ``seconds``; under ``losses`` the last one logged; the perplexities
        under ``other_scores``; and a ``score``, the negative mean perplexity."""
        evaluations = [e for e in self.entries if "mean" in e and "model" not in e]
        losses = [{"bilm": e["loss"]} for e in self.entries if "loss" in e]
        last = evaluations[-1]
        return {
            **{name: last[name] for name in ("step", "epoch", "words", "seconds")},
            "score": -last["mean"],
            "other_scores": {
                f"perplexity_{name}": last[name] for name in ("mean", "forward", "backward")
            },
            "losses": losses[-1] if losses else {},
            "checkpoints": [(-e["mean"], e["step"]) for e in evaluations],
        }


@contextmanager
def open_logger(config: PretrainConfig) -> Iterator[LogStep]:
    """The registered logger that [training.logger] names; one that does nothing if there is none.

    Its pipeline is empty and has the config of the run.

    Raises:
        ValueError: it cannot be made.
    """
    if config.training.logger is None:
        yield lambda info: None
        return
    setup = make_block("training.logger", config.training.logger)
    nlp, data = Language(), config.to_dict()
    data["training"] |= {"eval_frequency": config.training.eval_every, "score_weights": {}}
    nlp.config = Config(data)
    log_step, finalize = setup(nlp, sys.stdout, sys.stderr)
    try:
        yield log_step
    finally:
        finalize()


class Console:
    """Prints to the standard error stream.

    Args:
        quiet: print nothing.

    Attributes:
        bar: of the steps, if they have begun.
    """

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.bar: ProgressBar | None = None

    def print(self, text: str) -> None:
        """A message, above the bar if there is one."""
        if self.quiet:
            return
        if self.bar is not None and self.bar.is_bar:
            self.bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)
