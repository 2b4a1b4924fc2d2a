"""Do a Doc's vectors depend on its batch?

    python benchmarks/reliability/batches.py TEXT [--weights en_sm] [--docs 100] [--orders 10]

TEXT is any UTF-8 text, a paragraph a line, also .gz or .xz. Of its paragraphs random Docs are made:
a paragraph, one word, or one word 251 times. Each is read alone by a pipeline that has read nothing
before; then all are read by `nlp.pipe`, in random orders and batches of random sizes. Printed are
the largest difference and how many Docs differ; fails if it is more than 1e-5.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import numpy as np
import spacy

from spacy_elmo.text.shards import read_lines

MAX_DIFFERENCE = 1e-5


def random_texts(paragraphs: list[str], n: int, rng: random.Random) -> list[str]:
    """Distinct texts: two of three are paragraphs, the others one word, once or 251 times."""
    texts: dict[str, None] = {}
    while len(texts) < n:
        paragraph = rng.choice(paragraphs)
        word = rng.choice(paragraph.split())
        [text] = rng.choices([paragraph, word, " ".join([word] * 251)], [4, 1, 1])
        texts[text] = None
    return list(texts)


def make_nlp(weights: str) -> spacy.Language:
    """A pipeline that has read nothing."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": weights}})
    return nlp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--docs", type=int, default=100)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    paragraphs = [line.strip() for line in read_lines(arguments.text) if line.strip()]
    texts = random_texts(paragraphs, arguments.docs, rng)
    alone = {text: np.array(make_nlp(arguments.weights)(text).tensor) for text in texts}
    largest = dict.fromkeys(texts, 0.0)
    for _ in range(arguments.orders):
        rng.shuffle(texts)
        nlp = make_nlp(arguments.weights)
        for doc in nlp.pipe(texts, batch_size=rng.randint(1, len(texts))):
            difference = float(np.abs(doc.tensor - alone[doc.text]).max(initial=0.0))
            largest[doc.text] = max(difference, largest[doc.text])
    print(
        f"{len(texts)} Docs in {arguments.orders} random orders: largest difference "
        f"{max(largest.values()):.1e}; {sum(map(bool, largest.values()))} Docs differ"
    )
    sys.exit(not max(largest.values()) <= MAX_DIFFERENCE)


if __name__ == "__main__":
    main()
