"""What ELMo gains: a table, and a plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import typer
from datasets import TASKS, present

from spacy_elmo.viz.figure import COLOURS, in_style, new_figure, save_figure

# The score of a task in spaCy's metrics, and its name.
MEASURES = {
    "tagger": ("tag_acc", "tag accuracy"),
    "parser": ("dep_las", "labelled attachment"),
    "ner": ("ents_f", "entity F1"),
    "textcat": ("cats_micro_f", "accuracy"),
}
BAR = 0.38  # of the distance between two tasks


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
    draw_scores(scores, run / "scores.svg")
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


@in_style()
def draw_scores(scores: list[Score], output: Path) -> None:
    """Two bars for each task."""
    figure, axes = new_figure("Scores on the test sets", 1.2 + 0.8 * len(scores))
    for offset, name, colour in ((-BAR / 2, "without", COLOURS[4]), (BAR / 2, "ELMo", COLOURS[0])):
        values = [100 * (score.elmo if name == "ELMo" else score.plain) for score in scores]
        places = [number + offset for number in range(len(scores))]
        bars = axes.barh(places, values, BAR, label=name, color=colour)
        axes.bar_label(bars, fmt="%.1f", padding=4)
    axes.set_yticks(range(len(scores)), [f"{score.task}\n{score.measure}" for score in scores])
    axes.set(xlim=(0, 110), xticks=[])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.invert_yaxis()
    figure.legend(loc="outside lower left", frameon=False, ncols=2)
    save_figure(figure, output)


if __name__ == "__main__":
    typer.run(main)
