"""What ELMo gains: a table, and a plot."""

from __future__ import annotations

import json
from pathlib import Path

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


def main(run: Path, tasks: str = ",".join(TASKS)) -> None:
    """Write RUN/scores.md and RUN/scores.svg, from what `evaluate.py` has written."""
    lines = ["| task | score | without ELMo | with ELMo | error reduction |", "|---" * 5 + "|"]
    bars = {}
    for task in present(run, tasks):
        name, measure = MEASURES[task]
        files = [run / "metrics" / f"{task}-{arm}.json" for arm in ("plain", "elmo")]
        found = [json.loads(file.read_text(encoding="utf-8"))[name] or 0.0 for file in files]
        plain, elmo = (100 * score for score in found)
        gone = f"{(elmo - plain) / (100 - plain):.0%}" if plain < 100 else "–"
        lines.append(f"| {task} | {measure} | {plain:.1f} | {elmo:.1f} | {gone} |")
        bars[f"{task}\n{measure}"] = {"without": [plain], "ELMo": [elmo]}
    table = "\n".join(lines) + "\n"
    (run / "scores.md").write_text(table, encoding="utf-8")
    draw_bars(bars, "Scores on the test sets", run / "scores.svg")
    print(table)


if __name__ == "__main__":
    typer.run(main)
