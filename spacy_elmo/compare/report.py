"""The result of a comparison: scores, costs, examples, and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import mean
from typing import Any

import spacy

from .answers import Error, find_answers, find_errors
from .arms import Training
from .bootstrap import interval
from .training import MODEL, read_predicted

SHOWN = 5  # example sentences of each kind
# What the examples for a score are.
EXAMPLES = {"tag_acc": "tags", "dep_las": "arcs", "ents_f": "entities", "cats_score": "texts"}
# How the seeds are combined. The highest speed counts, because other work on the machine lowers it.
COSTS: dict[str, Callable[..., float]] = {"seconds": mean, "words_per_second": max, "mb": mean}

Results = Sequence[tuple[Training, dict[str, Any]]]


def compare(plain: Results, elmo: Results) -> dict[str, Any]:
    """Compare trainings that differ in ELMo alone.

    Args:
        plain: trainings without ELMo, one for each seed, and what `run` has measured.
        elmo: the same with ELMo.

    Returns:
        ``scores``, ``costs`` and ``examples`` by name; and a ``verdict``.

    Raises:
        ValueError: there is no score.
    """
    both = [[result for _, result in results] for results in (plain, elmo)]
    names = [n for n in both[0][0]["scores"] if all(n in r["scores"] for rs in both for r in rs)]
    if not names:
        raise ValueError("The dev set has no annotations that the scores of the config measure.")
    scores = {}
    for name in names:
        without, with_elmo = (mean(r["scores"][name] for r in results) for results in both)
        scores[name] = {
            "without": without,
            "with": with_elmo,
            "difference": with_elmo - without,
            "interval": interval(*([r["draws"][name] for r in results] for results in both)),
            "seeds": by_arm([r["scores"][name] for r in rs] for rs in both),
            "error_reduction": (with_elmo - without) / (1 - without) if without < 1 else None,
        }
    return {
        "weights": elmo[0][0].arm,
        "docs": elmo[0][0].size or None,
        "scores": scores,
        "costs": {c: by_arm(of(r[c] for r in rs) for rs in both) for c, of in COSTS.items()},
        "examples": find_examples(plain, elmo, names),
        "verdict": give_verdict({name: score["interval"] for name, score in scores.items()}),
    }


def by_arm(values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(("without", "with"), values, strict=True))


def give_verdict(intervals: dict[str, tuple[float, float]]) -> str:
    """A sentence about the confidence intervals of the differences."""
    raised = [name for name, (low, _) in intervals.items() if low > 0]
    lowered = [name for name, (_, high) in intervals.items() if high < 0]
    unsure = ", ".join(name for name in intervals if name not in raised + lowered)
    said = [f"it raises {', '.join(raised)}"] * bool(raised)
    said += [f"it lowers {', '.join(lowered)}"] * bool(lowered)
    said += [f"the interval of {unsure} includes zero"] * bool(unsure)
    does = (("does not help", "harms"), ("helps", "helps and harms"))[bool(raised)][bool(lowered)]
    return f"ELMo {does} here: {'; '.join(said)} (dev)."


def find_examples(plain: Results, elmo: Results, names: Sequence[str]) -> dict[str, Any]:
    """Find the answers that all seeds of one arm get wrong and all seeds of the other get right.

    Returns:
        For each kind of answers, those that are ``mended`` by ELMo and those that are ``broken``,
        as from `summary`.
    """
    nlp = spacy.load(plain[0][0].folder / MODEL)
    arms = [[read_predicted(training, nlp) for training, _ in each] for each in (plain, elmo)]
    docs = [example.reference for example in arms[0][0]]
    examples: dict[str, Any] = {}
    for name in filter(EXAMPLES.get, names):
        of = "cats" if name == "cats_score" else name
        plain_, elmo_ = (
            [[find_answers(of, e) or {} for e in each] for each in arm] for arm in arms
        )
        examples[EXAMPLES[name]] = {
            "mended": summary(find_errors(plain_, elmo_, docs)),
            "broken": summary(find_errors(elmo_, plain_, docs)),
        }
    return examples


def summary(errors: list[Error]) -> dict[str, Any]:
    """The ``count`` of errors, and some ``sentences`` with an error, each from another Doc."""
    one_each = list({error.doc: error for error in reversed(errors)}.values())[::-1]
    shown = one_each[:: max(1, len(one_each) // SHOWN)][:SHOWN]
    return {"count": len(errors), "sentences": [error._asdict() for error in shown]}
