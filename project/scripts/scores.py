"""What ELMo gains: a table, and a plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import typer
from datasets import TASKS

from spacy_elmo.viz.drawing import COLOURS, FAINT, Drawing
from spacy_elmo.viz.picture import Picture

# The score of a task in spaCy's metrics, and its name.
MEASURES = {
    "tagger": ("tag_acc", "tag accuracy"),
    "parser": ("dep_las", "labelled attachment"),
    "ner": ("ents_f", "entity F1"),
    "textcat": ("cats_micro_f", "accuracy"),
}
WIDTH, LEFT, BAR, GAP = 480, 200, 24, 24


class Score(NamedTuple):
    """The scores of a task, from 0 to 1, without ELMo and with it."""

    task: str
    measure: str
    plain: float
    elmo: float

    @property
    def corrected(self) -> float:
        """The share of the errors that are gone with ELMo."""
        return (self.elmo - self.plain) / (1 - self.plain) if self.plain < 1 else 0.0


def main(run: Path, tasks: str = ",".join(TASKS)) -> None:
    """Write RUN/scores.md and RUN/scores.svg."""
    scores = [read_score(run, task) for task in tasks.split(",")]
    table = make_table(scores)
    (run / "scores.md").write_text(table, encoding="utf-8")
    draw_scores(scores).save(run / "scores.svg")
    print(table)


def read_score(run: Path, task: str) -> Score:
    """The scores that `evaluate.py` has written."""
    name, measure = MEASURES[task]
    files = [run / "metrics" / f"{task}-{arm}.json" for arm in ("plain", "elmo")]
    values = [json.loads(file.read_text(encoding="utf-8"))[name] or 0.0 for file in files]
    return Score(task, measure, *values)


def make_table(scores: list[Score]) -> str:
    """The scores as a table in Markdown."""
    lines = ["| task | score | without ELMo | with ELMo | errors gone |", "|---|---|---|---|---|"]
    lines += [
        f"| {s.task} | {s.measure} | {100 * s.plain:.1f} | {100 * s.elmo:.1f} | {s.corrected:.0%} |"
        for s in scores
    ]
    return "\n".join(lines) + "\n"


def draw_scores(scores: list[Score]) -> Picture:
    """Two bars for each task."""
    drawing = Drawing(WIDTH, 20 + len(scores) * (2 * BAR + GAP))
    room, y = WIDTH - LEFT - 70, 20.0
    for score in scores:
        drawing.label(8, y + BAR, score.task, bold=True)
        drawing.label(8, y + BAR + 18, score.measure, size=11, fill=FAINT)
        for name, value, fill in [
            ("without", score.plain, COLOURS[4]), ("ELMo", score.elmo, COLOURS[0])
        ]:  # fmt: skip
            title = f"{score.task}, {name}: {100 * value:.1f}"
            drawing.label(LEFT - 8, y + BAR * 0.7, name, size=13, anchor="end")
            drawing.box(LEFT, y + 2, max(1.0, value * room), BAR - 4, fill, title=title)
            drawing.label(LEFT + value * room + 6, y + BAR * 0.7, f"{100 * value:.1f}", size=13)
            y += BAR
        y += GAP
    return Picture("With ELMo and without it", "Scores on the test sets, from 0 to 100.", drawing)


if __name__ == "__main__":
    typer.run(main)
