"""How well does a tagger read what it has not learned from: typos, other casing, unseen words?

    python benchmarks/quality/noise.py DATA [--arms …] [--size 2000] [--seeds 0 1 2] [--split dev]

A tagger learns from clean text, as in `downstream.py`, without ELMo and with it, and reads the same
sentences as they are and with noise: one typo (two letters swapped, one left out, doubled or
replaced by another) in a share of the words of four letters or more; all in lower case; all in
upper case. Printed are its accuracies (XPOS) on all words, and, on clean text, on the words that
were not in its training sentences; means of the seeds, with the lowest and the highest.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase
from types import MappingProxyType

from arms import ARMS, MIX, WITHOUT, Arm, Files, add_file_options, given_files
from downstream import train
from spacy.language import Language
from spacy.tokens import Doc
from tasks import TASKS, Size, examples_of, parse_size, sample

Noise = Callable[[str, random.Random], str]
LETTERS = 4  # words with fewer stay as they are


def with_typo(word: str, rng: random.Random) -> str:
    """One wrong keystroke in a word of two letters or more, which is never the word itself."""
    i = rng.randrange(len(word) - 1)
    other = rng.choice([letter for letter in ascii_lowercase if letter != word[i].lower()])
    edits = {
        word[:i] + word[i + 1] + word[i] + word[i + 2 :],
        word[:i] + word[i + 1 :],
        word[:i] + word[i] + word[i:],
        word[:i] + other + word[i + 1 :],
    }
    return rng.choice(sorted(edits - {word}))


def typos(share: float) -> Noise:
    def noise(word: str, rng: random.Random) -> str:
        is_hit = rng.random() < share and word.isalpha() and len(word) >= LETTERS
        return with_typo(word, rng) if is_hit else word

    return noise


NOISE: dict[str, Noise] = {
    "clean": lambda word, rng: word,
    "typos in 10 %": typos(0.1),
    "typos in 30 %": typos(0.3),
    "typos in all": typos(1.0),
    "lower case": lambda word, rng: word.lower(),
    "upper case": lambda word, rng: word.upper(),
}
UNSEEN = "unseen words"


def accuracies(
    nlp: Language, gold: list[tuple[list[str], list[str]]], seen: set[str], seed: int
) -> dict[str, float]:
    """In percent, for each kind of noise and for unseen words."""
    found = {}
    all_tags = [tag for _, tags in gold for tag in tags]
    for name, noise in NOISE.items():
        rng = random.Random(seed)  # the same noise for every arm
        noised = [[noise(word, rng) for word in words] for words, _ in gold]
        docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in noised)
        right = [
            a == b for a, b in zip((t.tag_ for doc in docs for t in doc), all_tags, strict=True)
        ]
        found[name] = 100 * statistics.mean(right)
        if name == "clean":
            all_words = (word for words, _ in gold for word in words)
            unseen = [r for r, word in zip(right, all_words, strict=True) if word not in seen]
            found[UNSEEN] = 100 * statistics.mean(unseen) if unseen else 100.0
    return found


def measure(
    data: Path,
    arm: Arm,
    seed: int,
    size: Size = 2000,
    files: Files = MappingProxyType({}),
    weights: str = "en_sm",
    max_steps: int | None = None,
    split: str = "dev",
) -> dict[str, float]:
    """Train a tagger: its `accuracies`; see `downstream.train` for the arguments."""
    task = TASKS["tagger"]
    nlp = train(task, size, arm, seed, data, files, weights, max_steps)
    every = examples_of(nlp, task, data, "train")
    learned = sample(every, size, random.Random(seed), task.by_label)
    seen = {token.text for example in learned for token in example.reference}
    test = [example.reference for example in examples_of(nlp, task, data, split)]
    gold = [([t.text for t in doc], [t.tag_ for t in doc]) for doc in test]
    return accuracies(nlp, gold, seen, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    arms = [name for name, arm in ARMS.items() if arm.needs != "embedded"]
    parser.add_argument("--arms", nargs="+", choices=arms, default=[WITHOUT, MIX])
    parser.add_argument("--weights", default="en_sm", help="of the biLM (default: en_sm)")
    parser.add_argument("--size", type=parse_size, default=2000, help="training sentences")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--max-steps", type=int, help="only try it, with so many steps")
    parser.add_argument("--split", choices=["dev", "test"], default="dev")
    add_file_options(parser)
    arguments = parser.parse_args()

    files = given_files(arguments, "tagger")
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seed in arguments.seeds:
        for name in arguments.arms:
            found = measure(
                arguments.data, ARMS[name], seed, arguments.size, files, arguments.weights,
                arguments.max_steps, arguments.split,
            )  # fmt: skip
            for kind, accuracy in found.items():
                scores[kind][name].append(accuracy)
    print("| |", " | ".join(arguments.arms), "|\n|---|" + "---|" * len(arguments.arms))
    for kind in (*NOISE, UNSEEN):
        each = (scores[kind][name] for name in arguments.arms)
        cells = (f"{statistics.mean(s):.2f} ({min(s):.2f}–{max(s):.2f})" for s in each)
        print(f"| {kind} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
