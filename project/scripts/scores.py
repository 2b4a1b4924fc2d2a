"""What ELMo gains: a table, and a plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import typer
from datasets import TASKS, present

from spacy_elmo.viz.scores import draw_bars

# The score of a task in spaCy's metrics, and its name.
MEASURES = {
    "tagger": ("tag_acc", "tag accuracy"),
    "parser": ("dep_las", "labelled attachment"),
    "ner": ("ents_f", "entity F1"),
    "textcat": ("cats_micro_f", "accuracy"),
}


class Score(NamedTuple):
    """The scores of a task, from 0 to 1, without ELMo and with it."""

    task: str
    measure: str
    plain: float
    elmo: float

    @property
    def corrected(self) -> str:
        """The error reduction: the share of the errors that ELMo removes, if there are any."""
        return f"{(self.elmo - self.plain) / (1 - self.plain):.0%}" if self.plain < 1 else "–"


def main(run: Path, tasks: str = ",".join(TASKS)) -> None:
    """Write RUN/scores.md and RUN/scores.svg."""
    scores = [read_score(run, task) for task in present(run, tasks)]
    table = make_table(scores)
    (run / "scores.md").write_text(table, encoding="utf-8")
    bars = {
        f"{s.task}\n{s.measure}": {"without": [100 * s.plain], "ELMo": [100 * s.elmo]}
        for s in scores
    }
    draw_bars(bars, "Scores on the test sets", run / "scores.svg")
    print(table)


def read_score(run: Path, task: str) -> Score:
    """The scores that `evaluate.py` has written."""
    name, measure = MEASURES[task]
    files = [run / "metrics" / f"{task}-{arm}.json" for arm in ("plain", "elmo")]
    values = [json.loads(file.read_text(encoding="utf-8"))[name] or 0.0 for file in files]
    return Score(task, measure, *values)


def make_table(scores: list[Score]) -> str:
    """The scores as a table in Markdown."""
    lines = ["| task | score | without ELMo | with ELMo | error reduction |", "|---" * 5 + "|"]
    lines += [
        f"| {s.task} | {s.measure} | {100 * s.plain:.1f} | {100 * s.elmo:.1f} | {s.corrected} |"
        for s in scores
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    typer.run(main)
