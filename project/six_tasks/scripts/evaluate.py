"""The scores on the test sets, beside the paper's."""

from __future__ import annotations

from pathlib import Path

import spacy
import typer
from paper_tasks.arms import ARMS, TASKS, error_reduction
from paper_tasks.corpus import Corpus

from .names import choose
from .train import folder


def main(run: Path, tasks: str = ",".join(TASKS), arms: str = "without,input") -> None:
    """Write RUN/scores.md; the error reduction is from the first arm to the second."""
    names = choose("arms", arms, ARMS)
    pair = ", " + " → ".join(names[:2]) if len(names) > 1 else ""
    lines = [
        f"| | {' | '.join(names)} | error reduction{pair} | the paper's | error reduction |",
        "|---" * (len(names) + 4) + "|",
    ]
    for name in choose("tasks", tasks, TASKS):
        task, scores = TASKS[name], []
        for arm in names:
            nlp = spacy.load(folder(run, name, arm) / "model-best")
            test = Corpus(str(run / "corpus" / name / "test.spacy"))(nlp)
            scores.append(100 * (nlp.evaluate(list(test))[task.score] or 0.0))
        reduction = f"{error_reduction(scores[0], scores[1]):.0f}%" if len(scores) > 1 else ""
        paper = ["", ""]
        if task.without is not None and task.with_elmo is not None:
            part = error_reduction(task.without, task.with_elmo)
            paper = [f"{task.without} → {task.with_elmo}", f"{part:.0f}%"]
        cells = [task.title, *(f"{score:.1f}" for score in scores), reduction, *paper]
        lines.append(f"| {' | '.join(cells)} |")
    table = "\n".join(lines) + "\n"
    (run / "scores.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    typer.run(main)
