"""The pictures of the documentation, drawn from its own tables and by the embedded model.

python docs/images/draw.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import spacy

import spacy_elmo.pipeline.factory  # noqa: F401
from spacy_elmo.clusters import center, project
from spacy_elmo.viz.drawing import COLOURS, FAINT, INK, Drawing

HERE = Path(__file__).parent
WITHOUT, WITH = "HashEmbedCNN", "ELMo, mix (λ = 0.001)"  # rows of the table
GREY = "#b8b8b8"
TASKS = {
    "Tags, 500 sentences": "tagger 500",
    "Tags, 2,000": "tagger 2000",
    "Tags, all 12,544": "tagger all",
    "Trees, 500 sentences": "parser 500",
    "Trees, 2,000": "parser 2000",
    "Trees, all 12,544": "parser all",
    "Names, WNUT-17": "ner all",
}
SENTENCES = (  # the word, its sense, and what is written beside its mark
    ("She opened a bank account last week.", "opened a bank account"),
    ("The bank refused to lend him any money.", "the bank refused to lend"),
    ("He works as a clerk in a large bank.", "a clerk in a large bank"),
    ("The bank raised its interest rates again.", "the bank raised its rates"),
    ("We sat on the bank and watched the boats.", "sat on the bank"),
    ("A heron stood near the muddy bank of the stream.", "the muddy bank of the stream"),
    ("Willows grow along the bank of the river.", "along the bank of the river"),
    ("They pulled the boat up on the opposite bank.", "boat up on the opposite bank"),
)


def measured() -> dict[str, dict[str, float]]:
    """Scores of the table of tasks in ``docs/measured.md``: row → column → mean."""
    page = (HERE.parent / "measured.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    [columns] = [row for row in rows if "tagger 500" in row]
    return {
        name: {c: float(cell.split()[0]) for c, cell in zip(columns, cells, strict=True)}
        for name, *cells in rows
        if name in (WITHOUT, WITH)
    }


def draw_gain() -> Drawing:
    """Error rates without and with ELMo, as bars."""
    scores = measured()
    row, left, scale = 54, 180, 4.3  # pixels: of a task, of its label, of one percent of errors
    drawing = Drawing(680, 52 + row * len(TASKS))
    for x, colour, text in ((left, GREY, "errors without"), (left + 175, COLOURS[0], "with ELMo")):
        drawing.box(x, 12, 14, 14, colour)
        drawing.label(x + 20, 24, f"{text}, %")
    for number, (title, column) in enumerate(TASKS.items()):
        y = 46 + row * number
        before, after = (100 - scores[name][column] for name in (WITHOUT, WITH))
        drawing.label(left - 12, y + 24, title, anchor="end")
        drawing.box(left, y, before * scale, 18, GREY)
        drawing.label(left + before * scale + 6, y + 15, f"{before:.1f}", fill=FAINT)
        drawing.box(left, y + 19, after * scale, 18, COLOURS[0])
        share = 1 - after / before
        drawing.label(left + after * scale + 6, y + 34, f"{after:.1f}   −{share:.0%}", bold=True)
    return drawing


def draw_senses() -> Drawing:
    """The word “bank” in eight sentences, by its vector."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    docs = nlp.pipe(sentence for sentence, _ in SENTENCES)
    vectors = [next(t for t in doc if t.text == "bank").vector for doc in docs]
    points, _ = project(center(np.stack(vectors)))
    low, high = points.min(axis=0), points.max(axis=0)
    places = (points - low) / (high - low) * np.array([500, 250]) + np.array([90, 50])
    drawing = Drawing(680, 350)
    drawing.box(1, 1, 678, 348, "#ffffff", stroke="#d0d0d0")
    lowest = {"start": 0.0, "end": 0.0}  # label on each side
    for i in np.argsort(places[:, 1]).tolist():
        x, y = places[i].tolist()
        kind, colour = ("circle", COLOURS[0]) if i < len(SENTENCES) / 2 else ("square", COLOURS[1])
        drawing.mark(kind, x, y, colour, stroke=INK, size=8)
        side, dx = ("end", -16) if x > 450 else ("start", 16)
        lowest[side] = max(y + 5, lowest[side] + 20)
        drawing.label(x + dx, lowest[side], SENTENCES[i][1], size=14, anchor=side)
    return drawing


if __name__ == "__main__":
    for name, title, drawing in (
        ("gain", "Error rates of spaCy components without and with ELMo", draw_gain()),
        ("senses", "The word “bank” in eight sentences, placed by its vector", draw_senses()),
    ):
        (HERE / f"{name}.svg").write_text(drawing.svg(title) + "\n", encoding="utf-8")
        print(HERE / f"{name}.svg")
