"""The errors of each task that ELMo corrects, and those that it adds."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import spacy
import typer
from datasets import TASKS, find_tasks
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from wasabi import msg

SHOWN = 15  # of each task


class Answer(NamedTuple):
    """What a pipeline predicts about a part of a text, and what would be right."""

    where: str
    gold: str
    predicted: str


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


def compare(run: Path, task: str) -> dict[str, list[dict[str, str]]]:
    """The errors that one pipeline makes and the other does not."""
    plain, elmo = (
        spacy.load(run / "models" / f"{task}-{arm}" / "model-best") for arm in ("plain", "elmo")
    )
    docs = DocBin().from_disk(run / "corpus" / TASKS[task] / "test.spacy")
    gold = list(docs.get_docs(plain.vocab))
    errors: dict[str, list[dict[str, str]]] = {"corrected": [], "added": []}
    for without, with_it in zip(read(plain, task, gold), read(elmo, task, gold), strict=True):
        for key in without.keys() & with_it.keys():
            a, b = without[key], with_it[key]
            for kind, wrong, right in [("corrected", a, b), ("added", b, a)]:
                if right.predicted == right.gold != wrong.predicted:
                    errors[kind].append(wrong._asdict())
    return errors


def read(nlp: Language, task: str, gold: list[Doc]) -> Iterator[dict[Hashable, Answer]]:
    """The answers about each text, by what they are about."""
    for doc, reference in zip(nlp.pipe(doc.text for doc in gold), gold, strict=True):
        yield ANSWERS[task](Example(doc, reference))


def tags(example: Example) -> dict[Hashable, Answer]:
    doc, gold = example.predicted, example.get_aligned("TAG", as_string=True)
    return {
        token.i: Answer(around(doc, token.i, token.i + 1), gold[token.i], token.tag_)
        for token in doc
        if gold[token.i]
    }


def trees(example: Example) -> dict[Hashable, Answer]:
    doc = example.predicted
    heads, labels = example.get_aligned_parse(projectivize=False)
    return {
        token.i: Answer(
            around(doc, token.i, token.i + 1),
            f"{labels[token.i]} of {doc[heads[token.i]].text}",
            f"{token.dep_} of {token.head.text}",
        )
        for token in doc
        if labels[token.i] and heads[token.i] is not None
    }


def entities(example: Example) -> dict[Hashable, Answer]:
    doc, nothing = example.predicted, "–"
    gold = {
        (s.start, s.end): s.label_ for s in example.get_aligned_spans_y2x(example.reference.ents)
    }
    found = {(span.start, span.end): span.label_ for span in doc.ents}
    spans = {
        (start, end): None for end in range(len(doc) + 1) for start in range(max(0, end - 8), end)
    }
    return {
        span: Answer(around(doc, *span), gold.get(span, nothing), found.get(span, nothing))
        for span in {**spans, **gold, **found}
    }


def classes(example: Example) -> dict[Hashable, Answer]:
    gold, found = example.reference.cats, example.predicted.cats
    text = example.predicted.text
    return {0: Answer(text, max(gold, key=gold.__getitem__), max(found, key=found.__getitem__))}


ANSWERS = {"tagger": tags, "parser": trees, "ner": entities, "textcat": classes}


def around(doc: Doc, start: int, end: int) -> str:
    """Tokens in brackets, with some of the text around them."""
    left, right = doc[max(0, start - 6) : start], doc[end : end + 6]
    return f"{left.text_with_ws}[{doc[start:end].text}]{doc[end - 1].whitespace_}{right.text}"


def to_html(found: dict[str, dict[str, list[dict[str, str]]]]) -> str:
    """A table for each task."""
    parts = []
    for task, errors in found.items():
        corrected, added = len(errors["corrected"]), len(errors["added"])
        parts.append(f"<h2>{task} ({corrected} corrected, {added} added)</h2>")
        rows = [
            f"<tr><td>{escape(e['where'])}</td><td>{escape(e['gold'])}</td>"
            f"<td>{escape(e['predicted'])}</td></tr>"
            for e in errors["corrected"][:SHOWN]
        ]
        head = "<tr><th>text</th><th>with ELMo, and right</th><th>without</th></tr>"
        parts += ['<table cellpadding="6">', head, *rows, "</table>"] if rows else []
    return "\n".join(parts)


if __name__ == "__main__":
    typer.run(main)
