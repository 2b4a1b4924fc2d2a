"""How well does a tagger read what it has not learned from: typos, unseen words?

A tagger learns from clean text, as in `downstream.py`, without ELMo and with it, and reads the same
sentences as they are and with noise: one typo (two letters swapped, one left out, doubled or
replaced by another) in a share of the words of four letters or more. Its accuracies (XPOS) are
those on all words of the dev set, and, on clean text, on the words that were not in its training
sentences.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase

from arms import Arm
from downstream import train
from spacy.language import Language
from spacy.tokens import Doc
from tasks import TASKS, examples_of, sample

Noise = Callable[[str, random.Random], str]
SIZE = 2000  # training sentences
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
    "typos in all": typos(1.0),
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
    data: Path, arm: Arm, seed: int, weights: str, max_steps: int | None
) -> dict[str, float]:
    """Train a tagger: its `accuracies`; see `downstream.train` for the arguments."""
    task = TASKS["tagger"]
    nlp = train(task, SIZE, arm, seed, data, {}, weights, max_steps)
    every = examples_of(nlp, task, data, "train")
    learned = sample(every, SIZE, random.Random(seed), task.by_label)
    seen = {token.text for example in learned for token in example.reference}
    test = [example.reference for example in examples_of(nlp, task, data, "dev")]
    gold = [([t.text for t in doc], [t.tag_ for t in doc]) for doc in test]
    return accuracies(nlp, gold, seen, seed)
