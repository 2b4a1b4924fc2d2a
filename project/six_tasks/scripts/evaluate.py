"""The scores on the test sets, beside the paper's."""

from __future__ import annotations

from pathlib import Path

import spacy
import typer
from paper_tasks.arms import TASKS, errors_gone
from paper_tasks.corpus import Corpus

from .train import folder


def main(run: Path, tasks: str = ",".join(TASKS), arms: str = "without,input") -> None:
    """Write RUN/scores.md; errors are those of the first arm that are gone in the second."""
    names = arms.split(",")
    lines = [
        f"| | {' | '.join(names)} | errors gone | the paper's | errors gone |",
        "|---" * (len(names) + 4) + "|",
    ]
    for name in tasks.split(","):
        task, scores = TASKS[name], []
        for arm in names:
            nlp = spacy.load(folder(run, name, arm) / "model-best")
            test = Corpus(str(run / "corpus" / name / "test.spacy"))(nlp)
            scores.append(100 * (nlp.evaluate(list(test))[task.score] or 0.0))
        gone = f"{errors_gone(scores[0], scores[1]):.0f} %" if len(scores) > 1 else ""
        paper = ["", ""]
        if task.without is not None and task.with_elmo is not None:
            part = errors_gone(task.without, task.with_elmo)
            paper = [f"{task.without} → {task.with_elmo}", f"{part:.0f} %"]
        cells = [task.title, *(f"{score:.1f}" for score in scores), gone, *paper]
        lines.append(f"| {' | '.join(cells)} |")
    table = "\n".join(lines) + "\n"
    (run / "scores.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    typer.run(main)
