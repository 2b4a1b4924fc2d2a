"""The pictures of the documentation, drawn from its own tables and by the embedded model.

python docs/images/draw.py
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import spacy
from drawing import Drawing, Point, Shape

import spacy_elmo.pipeline.component  # noqa: F401
from spacy_elmo import find_senses, viz
from spacy_elmo.cli.demo import read_sentences
from spacy_elmo.senses.clusters import center, project
from spacy_elmo.senses.occurrences import make_context
from spacy_elmo.text.readers import blank_pipeline
from spacy_elmo.text.segments import sentence_bounds
from spacy_elmo.viz.figure import COLOURS, FAINT, INK, PAPER
from spacy_elmo.weights.find import find_weights

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
Box = tuple[float, float, float, float]  # left, top, right, bottom
KO_SM, KOREAN = (
    ROOT / "project" / "weights" / "ko_sm",
    ROOT / "benchmarks" / "quality" / "korean_senses.txt",
)
GREY = "#b8b8b8"
SENTENCES = (  # four of each sense
    "She opened a bank account last week.",
    "The bank refused to lend him any money.",
    "He works as a clerk in a large bank.",
    "The bank raised its interest rates again.",
    "We sat on the bank and watched the boats.",
    "A heron stood near the muddy bank of the stream.",
    "Willows grow along the bank of the river.",
    "They pulled the boat up on the opposite bank.",
)


def rows_of(name: str) -> dict[str, list[str]]:
    """A table of ``docs/evidence.md``: the cells of each row by its label."""
    page = (HERE.parent / "evidence.md").read_text(encoding="utf-8")
    table = page.partition(f"<!-- table: {name} -->")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip(" *`") for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows if row}


def measured() -> dict[str, list[str]]:
    """Of tagger, parser and NER: the scores without and with ELMo, and the error reduction."""
    rows = rows_of("tasks").items()
    return {k[0].upper() + k[1:]: v for k, v in rows if k.startswith(("tagger", "parser", "NER"))}


def draw_gain() -> Drawing:
    """Error rates without and with ELMo, as bars."""
    scores = measured()
    row, left, scale = 54, 195, 4.3  # pixels: of a task, of its label, of one percent of errors
    drawing = Drawing(695, 52 + row * len(scores))
    legend = ((left, GREY, "errors without ELMo"), (left + 200, COLOURS[0], "with ELMo"))
    for x, colour, text in legend:
        drawing.box(x, 12, 14, 14, colour)
        drawing.label(x + 20, 24, f"{text}, %")
    for number, (title, (*cells, share)) in enumerate(scores.items()):
        y = 46 + row * number
        before, after = (100 - float(cell) for cell in cells)
        drawing.label(left - 12, y + 24, title, anchor="end")
        drawing.box(left, y, before * scale, 18, GREY)
        drawing.label(left + before * scale + 6, y + 15, f"{before:.1f}", fill=FAINT)
        drawing.box(left, y + 19, after * scale, 18, COLOURS[0])
        drawing.label(
            left + after * scale + 6, y + 34, f"{after:.1f}   −{share}", bold=True
        )
    return drawing


def draw_models() -> Drawing:
    """Words a second on one core, in a logarithmic scale, against scores."""
    models, others = rows_of("models"), rows_of("alternatives")
    [speeds], web = [v for k, v in others.items() if k.startswith("words")], "en_core_web_sm"
    speed = dict(zip(others[""], (each.replace(",", "") for each in speeds), strict=True))
    shares = [float(share) for share in models["speed, one core"]]
    rates = {n: float(speed["ELMo"]) * s for n, s in zip(models[""], shares, strict=True)}
    rates[web] = float(speed[web])
    drawing = Drawing(695, 330)
    for left, task in ((45, "tagger, 500 sentences"), (395, "NER")):
        scores = dict(zip(models[""], map(float, models[task]), strict=True))
        scores[web] = float(others[task][others[""].index(web)])
        low, high = min(scores.values()), max(scores.values())
        drawing.box(left, 40, 290, 230, "#ffffff", stroke="#b0b0b0")
        drawing.label(left, 28, task[0].upper() + task[1:], bold=True)
        for rate in (3000, 10000, 30000):
            x = left + 35 + 90 * float(np.log(rate / 3000))
            drawing.label(x, 290, f"{rate:,}", size=13, anchor="middle", fill=FAINT)
        for name, score in scores.items():
            x = left + 35 + 90 * float(np.log(rates[name] / 3000))
            y = 235 - 160 * (score - low) / (high - low)
            own = name in ("en_sm", "en_md")
            drawing.mark("circle", x, y, COLOURS[0] if own else GREY, stroke=INK, size=8)
            anchor = "end" if x > left + 200 else "start"
            above = y - 14 if own else y + 24
            drawing.label(x, above, f"{name} {score:.1f}", size=14, anchor=anchor, bold=own)
    drawing.label(347, 318, "words a second on one core", anchor="middle", fill=FAINT)
    return drawing


def draw_senses(picture: Path) -> None:
    """The picture that the quick start's command draws, of the sentences of the demo."""
    with TemporaryDirectory() as folder:
        corpus = Path(folder, "texts.txt")
        corpus.write_text("\n".join(text for *_, text in read_sentences()), encoding="utf-8")
        viz.draw_senses(find_senses("bank", str(corpus), quiet=True), output=picture)


def draw_contexts(
    drawing: Drawing,
    places: list[list[float]],
    marks: list[int],
    labels: list[str],
    right: float,
    size: int,
) -> None:
    """A mark for each context, and its label where it is free, as near as there is room."""
    taken = [(x - 10, y - 10, x + 10, y + 10) for x, y in places]
    for (x, y), mark, label in zip(places, marks, labels, strict=True):
        draw_sense(drawing, x, y, mark)
        width = size * sum(1.0 if ord(c) > 255 else 0.55 for c in label)
        for dy, side in product((5, 16, -8, 28, -20, 40, -32), (1, -1)):
            left = x + 16 if side == 1 else x - 16 - width
            box = (left, y + dy - 15, left + width, y + dy + 4)
            if (
                left > 4
                and box[1] > 4
                and box[2] < right
                and not any(meet(box, other) for other in taken)
            ):
                break
        taken.append(box)
        anchor = "start" if side == 1 else "end"
        drawing.label(x + 16 * side, y + dy, label, size=size, anchor=anchor)


def draw_layers() -> Drawing:
    """The vectors of “bank” in eight sentences, in each layer."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"store": ["layers"]})
    docs = nlp.pipe(SENTENCES)
    layers = np.stack([
        doc._.elmo_layers[:, next(t.i for t in doc if t.text == "bank")] for doc in docs
    ])  # fmt: skip
    side, gap = 200, 20
    drawing = Drawing(3 * side + 2 * gap, side + 110)
    for layer in range(3):
        left = layer * (side + gap)
        points = project(layers[:, layer] - layers[:, layer].mean(axis=0))
        places = left + side / 2 + points * 0.4 * side / max(np.abs(points).max(), 1e-6) * [1, 1]
        drawing.box(left + 1, 45, side - 2, side, "#ffffff", stroke="#b0b0b0")
        drawing.label(left + side / 2, 30, f"layer {layer}", size=20, anchor="middle", bold=True)
        for i in range(len(SENTENCES)):
            x, y = places[i, 0], places[i, 1] - left + 45
            draw_sense(drawing, x, y, int(i >= len(SENTENCES) / 2))
    for number, (x, text) in enumerate(((40, "bank of money"), (340, "bank of a river"))):
        draw_sense(drawing, x, side + 82, number)
        drawing.label(x + 18, side + 89, text, size=20)
    return drawing


def draw_sense(drawing: Drawing, x: float, y: float, number: int) -> None:
    kind = ("circle", "square", "triangle")[number]
    drawing.mark(kind, x, y, COLOURS[number], stroke=INK, size=8)


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


def meet(a: Box, b: Box) -> bool:
    """Whether two rectangles overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def draw_korean() -> Drawing:
    """The word 말 in the sentences of its three senses that `korean_senses.txt` has."""
    nlp = blank_pipeline(find_weights(KO_SM), None)
    nlp.add_pipe("elmo", config={"store": ["layers"], "model": {"weights": str(KO_SM)}})
    rows = [row for row in read_sentences(KOREAN) if row[0] == "말"]
    senses = {"horse": "말 (동물)", "speech": "말 (언어)", "end": "말 (끝)"}
    vectors, labels = [], []
    for _, sense, sentence in rows:
        doc = nlp(sentence)
        [i] = [token.i for token in doc if token.text.startswith("말")]
        [tokens] = sentence_bounds(doc, "doc").tokens
        vectors.append(make_context(doc, tokens, i, sense).vector)
        labels.append(doc[max(i - 1, 0) : i + 2].text)
    points = project(center(np.stack(vectors)))
    low, high = points.min(axis=0), points.max(axis=0)
    places = (points - low) / (high - low) * np.array([560, 360]) + np.array([40, 50])
    drawing = Drawing(760, 490)
    drawing.box(1, 1, 758, 438, "#ffffff", stroke="#d0d0d0")
    marks = [list(senses).index(sense) for _, sense, _ in rows]
    draw_contexts(drawing, places.tolist(), marks, labels, 756, 16)
    for number, text in enumerate(senses.values()):
        draw_sense(drawing, 30 + 170 * number, 465, number)
        drawing.label(46 + 170 * number, 471, text, size=17)
    return drawing


if __name__ == "__main__":
    for name, title, drawing in (
        ("gain", "Error rates of spaCy components without and with ELMo", draw_gain()),
        ("models", "Words a second against scores of four models' vectors", draw_models()),
        ("pipeline", "From words to vectors: char-CNN, two LSTM layers, mix", draw_pipeline()),
        ("layers", "The word “bank” in eight sentences, in each layer", draw_layers()),
        ("korean", "문장 열다섯 개에 나온 “말”, 벡터에 따라 놓은 그림", draw_korean()),
    ):
        (HERE / f"{name}.svg").write_text(drawing.svg(title) + "\n", encoding="utf-8")
        print(HERE / f"{name}.svg")
    draw_senses(HERE / "senses.svg")
