"""The errors of each task that ELMo corrects, and those that it adds."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import spacy
import typer
from datasets import TASKS, find_tasks
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from wasabi import msg

from spacy_elmo.compare.answers import Answers, find_answers, find_errors

SHOWN = 15  # of each task
SCORES = {"tagger": "tag_acc", "parser": "dep_las", "ner": "ents_f", "textcat": "cats"}


def main(run: Path, tasks: str = ",".join(TASKS), gpu_id: int = -1) -> None:
    """Write RUN/corrected.html and, with all errors, RUN/corrected.json."""
    if gpu_id >= 0:
        spacy.require_gpu(gpu_id)
    found = {task: compare(run, task) for task in find_tasks(tasks)}
    data = json.dumps(found, ensure_ascii=False, indent=1)
    (run / "corrected.json").write_text(data + "\n", encoding="utf-8")
    caption = (
        "Errors on the test sets that only the pipeline without ELMo makes. "
        "In brackets: how many there are, and how many ELMo adds."
    )
    title = '<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Errors that ELMo corrects</title>'
    page = f"{title}\n<p>{caption}</p>\n{to_html(found)}\n"
    (run / "corrected.html").write_text(page, encoding="utf-8")
    for task, errors in found.items():
        msg.good(f"{task}: {len(errors['corrected'])} corrected, {len(errors['added'])} added")


def compare(run: Path, task: str) -> dict[str, list[dict[str, Any]]]:
    """The errors that one pipeline makes and the other does not."""
    plain, elmo = (
        spacy.load(run / "models" / f"{task}-{arm}" / "model-best") for arm in ("plain", "elmo")
    )
    docs = DocBin().from_disk(run / "corpus" / TASKS[task] / "test.spacy")
    gold = list(docs.get_docs(plain.vocab))
    without, with_it = ([answers(nlp, task, gold)] for nlp in (plain, elmo))
    both = {"corrected": (without, with_it), "added": (with_it, without)}
    return {
        kind: [error._asdict() for error in find_errors(bad, good, gold)]
        for kind, (bad, good) in both.items()
    }


def answers(nlp: Language, task: str, gold: list[Doc]) -> list[Answers]:
    """What a pipeline answers about each text."""
    docs = nlp.pipe(doc.text for doc in gold)
    return [find_answers(SCORES[task], Example(*both)) for both in zip(docs, gold, strict=True)]


def to_html(found: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    """A table for each task."""
    parts = []
    for task, errors in found.items():
        corrected, added = len(errors["corrected"]), len(errors["added"])
        parts.append(f"<h2>{task} ({corrected} corrected, {added} added)</h2>")
        rows = [
            f"<tr><td>{escape(e['text'])}</td><td>{escape(e['right'])}</td>"
            f"<td>{escape(e['wrong'])}</td></tr>"
            for e in errors["corrected"][:SHOWN]
        ]
        head = "<tr><th>text</th><th>with ELMo, and right</th><th>without</th></tr>"
        parts += ['<table cellpadding="6">', head, *rows, "</table>"] if rows else []
    return "\n".join(parts)


if __name__ == "__main__":
    typer.run(main)
