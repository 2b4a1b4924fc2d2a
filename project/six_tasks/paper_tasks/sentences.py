"""Sentences of our own for a tiny run: some dozens for each task, of a few names, verbs, things."""

from __future__ import annotations

import random
from typing import Any

NAMES = ("Anna", "Peter", "Maria", "Oscar", "Nora", "Emil")
FEMININE = {"Anna", "Maria", "Nora"}
ACTS = {
    "painted": "the door",
    "opened": "the window",
    "sold": "the boat",
    "bought": "the lamp",
    "closed": "the shop",
    "cleaned": "the kitchen",
}
PLACES = ("in Dover", "at Northbank", "in Wales", "at the harbour")
MOODS = {
    "VERY_NEG": "a dreadful and endless film",
    "NEG": "a rather weak film",
    "NEU": "a film of two hours",
    "POS": "a good film",
    "VERY_POS": "a wonderful and brilliant film",
}


def tiny_rows(task: str, split: str) -> list[dict[str, Any]]:
    """The rows of a split, as `datasets` makes Docs of them."""
    rng = random.Random(f"{task} {split}")
    return [ROWS[task](rng) for _ in range(48 if split == "train" else 12)]


def act(rng: random.Random) -> tuple[str, str, str, str]:
    """Who did what to what, and where."""
    verb = rng.choice(list(ACTS))
    return rng.choice(NAMES), verb, ACTS[verb], rng.choice(PLACES)


def entailment_row(rng: random.Random) -> dict[str, Any]:
    name, verb, thing, place = act(rng)
    label = rng.choice(("entailment", "neutral", "contradiction"))
    hypothesis = {
        "entailment": f"{name} {verb} {thing}.",
        "neutral": f"{name} {verb} {thing} because it rained.",
        "contradiction": f"{name} never {verb} {thing}.",
    }[label]
    premise = f"{name} {verb} {thing} {place}."
    return {"premise": premise, "hypothesis": hypothesis, "label": label}


def question_row(rng: random.Random) -> dict[str, Any]:
    name, verb, thing, place = act(rng)
    second = rng.choice([each for each in NAMES if each != name])
    context = f"It was Monday. {name} {verb} {thing} {place}. {second} went home."
    question, answer = rng.choice(
        [
            (f"Who {verb} {thing}?", name),
            (f"What was {verb} by {name}?", thing),
            (f"Where was {thing}?", place),
        ]
    )
    answers = [{"text": answer, "start": context.index(answer)}]
    return {"question": question, "context": context, "answers": answers}


def roles_row(rng: random.Random) -> dict[str, Any]:
    name, verb, thing, place = act(rng)
    words, where = [name, verb, *thing.split()], place.split()
    predicates = [{"index": 1, "roles": [[0, 1, "ARG0"], [1, 2, "V"], [2, len(words), "ARG1"]]}]
    predicates[0]["roles"].append([len(words), len(words) + len(where), "ARGM-LOC"])
    words += where
    if rng.random() < 0.5:  # a second predicate
        start = len(words) + 1
        words += ["and", "left", "Dover"]
        roles = [[0, 1, "ARG0"], [start, start + 1, "V"], [start + 1, start + 2, "ARG1"]]
        predicates.append({"index": start, "roles": roles})
    return {"words": [*words, "."], "predicates": predicates}


def coreference_row(rng: random.Random) -> dict[str, Any]:
    name, verb, thing, place = act(rng)
    pronoun = "She" if name in FEMININE else "He"
    words = [name, verb, *thing.split(), *place.split(), "."]
    first = len(words)
    words += [pronoun, "liked", "it", "."]
    clusters = [[[0, 1], [first, first + 1]], [[2, 4], [first + 2, first + 3]]]
    if len(words) > first:
        clusters.append([[5, first - 1]])  # the place
    return {"words": words, "sentences": [[0, first], [first, len(words)]], "clusters": clusters}


def gap_row(rng: random.Random) -> dict[str, Any]:
    first = rng.choice(sorted(FEMININE))
    second = rng.choice(sorted(set(NAMES) - FEMININE))
    pronoun = rng.choice(("she", "he"))
    text = f"{first} met {second} in Dover because {pronoun} lived there."
    found: dict[str, Any] = {"text": text}
    for key, name in (("A", first), ("B", second), ("pronoun", pronoun)):
        found |= {key: name, f"{key}_offset": text.index(f"{name} ")}
    return {**found, "A_coref": pronoun == "she", "B_coref": pronoun == "he"}


def ner_row(rng: random.Random) -> dict[str, Any]:
    name, verb, thing, place = act(rng)
    preposition, *where = place.split()
    words = [name, verb, *thing.split(), preposition, *where, "."]
    tags = ["B-person", *["O"] * 4, "B-location" if len(where) == 1 else "O"]
    return {"words": words, "ents": tags + ["O"] * (len(words) - len(tags))}


def sentiment_row(rng: random.Random) -> dict[str, Any]:
    label = rng.choice(list(MOODS))
    return {"text": f"{rng.choice(NAMES)} saw {MOODS[label]} .", "label": label}


ROWS = {
    "entailment": entailment_row,
    "questions": question_row,
    "roles": roles_row,
    "coreference": coreference_row,
    "gap": gap_row,
    "ner": ner_row,
    "sentiment": sentiment_row,
}
