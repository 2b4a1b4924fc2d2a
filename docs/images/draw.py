"""Two pictures of the documentation: a diagram, and one drawn from the page of evidence.

python docs/images/draw.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from drawing import Drawing, Point, Shape

from spacy_elmo.viz.figure import COLOURS, FAINT, INK, PAPER

HERE = Path(__file__).parent
GREY = "#b8b8b8"


def rows_of(name: str) -> dict[str, list[str]]:
    """A table of ``docs/evidence.md``: the cells of each row by its label."""
    page = (HERE.parent / "evidence.md").read_text(encoding="utf-8")
    table = page.partition(f"<!-- table: {name} -->")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip(" *`") for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows if row}


def draw_models() -> Drawing:
    """Words a second on one core, in a logarithmic scale, against scores."""
    models, others = rows_of("models"), rows_of("alternatives")
    [speeds], web = [v for k, v in others.items() if k.startswith("words")], "en_core_web_sm"
    speed = dict(zip(others[""], (each.replace(",", "") for each in speeds), strict=True))
    shares = [float(share) for share in models["speed, one core"]]
    rates = {n: float(speed["ELMo"]) * s for n, s in zip(models[""], shares, strict=True)}
    rates[web] = float(speed[web])
    drawing = Drawing(695, 330)
    for left, task, axis in (
        (45, "tagger, 500 sentences", "Tagger: accuracy, %"),
        (395, "NER", "NER: F1, %"),
    ):
        scores = dict(zip(models[""], map(float, models[task]), strict=True))
        scores[web] = float(others[task][others[""].index(web)])
        low, high = min(scores.values()), max(scores.values())
        drawing.box(left, 40, 290, 230, "#ffffff", stroke="#b0b0b0")
        drawing.label(left, 28, axis, bold=True)
        for rate in (3000, 10000, 30000, 100000):
            x = left + 15 + 70 * float(np.log(rate / 3000))
            drawing.label(x, 290, f"{rate:,}", size=13, anchor="middle", fill=FAINT)
        for name, score in scores.items():
            x = left + 15 + 70 * float(np.log(rates[name] / 3000))
            y = 235 - 160 * (score - low) / (high - low)
            own = name in ("en_sm", "en_md")
            drawing.mark("circle", x, y, COLOURS[0] if own else GREY, stroke=INK, size=8)
            anchor = "end" if x > left + 120 else "start"
            above = y - 14 if own else y + 24
            drawing.label(x, above, f"{name} {score:.1f}", size=14, anchor=anchor, bold=own)
    drawing.label(347, 318, "words a second on one core", anchor="middle", fill=FAINT)
    return drawing


def draw_pipeline() -> Drawing:
    """From the words of a sentence to a vector of each."""
    words, xs, rail = ("The", "bank", "lent", "money"), (66, 170, 274, 378), 450
    drawing = Drawing(500, 590)

    def cells(y: float, text: str, fill: str, ink: str = INK, arrow: str = "") -> None:
        for i, x in enumerate(xs):
            drawing.box(x - 40, y, 80, 28, fill, stroke=INK)
            drawing.label(x, y + 19, text, anchor="middle", fill=ink)
            if arrow == "right" and i:
                draw_arrow(drawing, (xs[i - 1] + 40, y + 14), (x - 40, y + 14))
            if arrow == "left" and i:
                draw_arrow(drawing, (x - 40, y + 14), (xs[i - 1] + 40, y + 14))

    def down(y: float) -> None:
        for x in xs:
            draw_arrow(drawing, (x, y), (x, y + 26))

    def to_mix(y: float, weight: str) -> None:
        drawing.line((xs[-1] + 40, y), (rail, y), stroke=INK, width=1.5)
        drawing.label(rail - 18, y - 6, weight, anchor="middle")

    for x, word in zip(xs, words, strict=True):
        drawing.label(x, 24, word, anchor="middle", size=18, bold=True)
    down(32)
    cells(58, "char-CNN", "#ffffff")
    down(86)
    cells(112, "x", "#deebf7")
    to_mix(126, "s₀")
    drawing.label(26, 164, "layer 0, x: the same vector in every sentence", fill=FAINT)
    for layer, y in ((1, 206), (2, 336)):
        down(y - 28)
        cells(y, "forward", "#9ecae1", arrow="right")
        cells(y + 40, "backward", "#2f6aa8", PAPER, arrow="left")
        to_mix(y + 34, "s₁" if layer == 1 else "s₂")
        drawing.label(
            26,
            y + 92,
            f"layer {layer}, h{'₁₂'[layer - 1]}: left context, right context",
            fill=FAINT,
        )
    draw_arrow(drawing, (rail, 126), (rail, 470))
    drawing.line((rail, 126), (rail, 127), stroke=INK, width=1.5)
    drawing.box(26, 472, 460, 44, "#fff3d6", stroke=INK)
    drawing.label(
        256, 500, "the mix of a task:  γ · (s₀ x + s₁ h₁ + s₂ h₂)", anchor="middle", size=17
    )
    down(516)
    drawing.label(
        256, 566, "a vector for each word, read by the tagger, the parser, …", anchor="middle"
    )
    return drawing


def draw_arrow(drawing: Drawing, start: Point, end: Point) -> None:
    (x1, y1), (x2, y2) = start, end
    length = float(np.hypot(x2 - x1, y2 - y1))
    u, v = (x2 - x1) / length, (y2 - y1) / length
    back = (x2 - 8 * u, y2 - 8 * v)
    drawing.line(start, back, stroke=INK, width=1.5)
    tip = [end, (back[0] - 4 * v, back[1] + 4 * u), (back[0] + 4 * v, back[1] - 4 * u)]
    drawing.items.append(Shape(tip, INK, INK, 0.5))


TITLES = {
    "models": "Scores of four models by their words a second",
    "pipeline": "From words to vectors: char-CNN, two LSTM layers, mix",
}

if __name__ == "__main__":
    for name, draw in (("models", draw_models), ("pipeline", draw_pipeline)):
        file = HERE / f"{name}.svg"
        file.write_text(draw().svg(TITLES[name]) + "\n", encoding="utf-8")
        print(file)
