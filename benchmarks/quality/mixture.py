"""The training text of en_sm: documents of all its sources in one random order.

Usage: python benchmarks/quality/mixture.py DATA OUT [--part 12000000]

DATA is the folder of the texts (lm/enwiki, …). OUT gets mixture-000.txt with the first ``part``
words, and mixture-001.txt with the rest: any prefix is a fair sample. The shares are those of
the card of en_sm. `python -m spacy elmo tokenize` makes shards of it. The texts of evaluations
are not read.
"""

from __future__ import annotations

import argparse
import lzma
import random
from collections.abc import Iterator
from pathlib import Path

# How often each source is read; of less than once, that share of its documents. Novels count by
# their passages.
SOURCES = {
    "enwiki": 1, "enwiki-more": 1, "fiction-pd": 0.6, "registers/changelog": 1,
    "registers/auspm-transcripts": 0.5, "registers/openstax-textbooks": 1,
    "registers/whitehouse-briefings": 1, "registers/self-dialogue": 1,
    "registers/community-blogs": 2, "registers/gov-blogs": 1, "registers/stackexchange-qa": 2,
    "registers/tatoeba-sentences": 1, "registers/sgd-dialogues": 0.5,
    "registers/ami-icsi-meetings": 1, "registers/medquad-health": 1, "registers/scp-tales": 2,
    "registers/common-voice-sentences": 2, "registers/wp-current-events": 3,
    "registers/spacelog-nasa": 0.5,
}  # fmt: skip
PASSAGE = 100  # paragraphs of a novel


def read_documents(path: Path) -> Iterator[list[str]]:
    """The paragraphs of each document; blank lines separate documents."""
    document: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                document.append(line)
            elif document:
                yield document
                document = []
    if document:
        yield document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--part", type=int, default=12_000_000, help="words of the first file")
    args = parser.parse_args()
    rng = random.Random(28)
    chosen: list[list[str]] = []
    for name, times in SOURCES.items():
        documents = list(read_documents(args.data / "lm" / name / "train.txt.xz"))
        if name.startswith("fiction"):
            documents = [
                each[i : i + PASSAGE] for each in documents for i in range(0, len(each), PASSAGE)
            ]
        if times < 1:
            documents = rng.sample(documents, round(times * len(documents)))
        chosen += documents * max(1, round(times))
        n_words = sum(len(line.split()) for document in documents for line in document)
        print(f"{name}: {times} x {n_words:,} words of {len(documents):,} documents", flush=True)
    rng.shuffle(chosen)
    args.out.mkdir(parents=True, exist_ok=True)
    n_words, file = 0, (args.out / "mixture-000.txt").open("w", encoding="utf-8")
    for document in chosen:
        if n_words > args.part and file.name.endswith("000.txt"):
            file.close()
            file = (args.out / "mixture-001.txt").open("w", encoding="utf-8")
        file.writelines([*document, "\n"])
        n_words += sum(len(line.split()) for line in document)
    file.close()
    print(f"{n_words:,} words")


if __name__ == "__main__":
    main()
