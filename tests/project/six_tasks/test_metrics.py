"""The scores, against what was computed by hand."""

from __future__ import annotations

import pytest
from paper_tasks.metrics import (
    CoreferenceScores,
    Counts,
    Judgement,
    b_cubed,
    ceaf,
    exact_match,
    gap_scores,
    join_continued,
    muc,
    token_f1,
)


@pytest.mark.parametrize(
    ("ours", "gold", "f1", "same"),
    [
        ("The Eiffel Tower", "eiffel tower!", 1.0, True),
        ("in Paris, France", "Paris", 0.5, False),  # 1 of 3 words, 1 of 1
        ("to be or not to be", "to be", 0.5, False),  # 2 of 6 words, 2 of 2
        ("1,000", "1000", 1.0, True),  # punctuation goes, and joins
        ("Rome", "Paris", 0.0, False),
        ("the", "Paris", 0.0, False),
    ],
)
def test_answers(ours: str, gold: str, f1: float, same: bool) -> None:
    assert token_f1(ours, gold) == pytest.approx(f1)
    assert exact_match(ours, gold) is same


def test_roles_that_are_continued() -> None:
    roles = [(0, 2, "ARG1"), (4, 6, "C-ARG1"), (2, 3, "ARG0"), (7, 8, "R-ARG0"), (8, 9, "C-ARG2")]
    assert join_continued(roles) == {
        ("ARG1", ((0, 2), (4, 6))),
        ("ARG0", ((2, 3),)),
        ("R-ARG0", ((7, 8),)),
        ("ARG2", ((8, 9),)),  # there is nothing that it continues
    }


def test_counts() -> None:
    counts = Counts()
    assert counts.f1 == 0
    counts.add({1, 2, 3}, {2, 3, 4, 5})
    counts.add(set(), {9})
    assert (counts.precision, counts.recall) == (2 / 3, 2 / 5)
    assert counts.f1 == pytest.approx(0.5)


GOLD = [{"a", "b", "c"}, {"d", "e"}, {"f"}]


def ratio(parts: tuple[float, ...]) -> tuple[float, float]:
    """Precision and recall."""
    return parts[0] / parts[1], parts[2] / parts[3]


def test_the_example_of_the_reference_scorer() -> None:
    """Pradhan et al. 2014, section 3: key {a b c} {d e f g}, response {a b} {c d} {f g h i}."""
    key = [set("abc"), set("defg")]
    response = [set("ab"), set("cd"), set("fghi")]
    assert ratio(muc(response, key)) == pytest.approx((0.4, 0.4))
    assert ratio(b_cubed(response, key)) == pytest.approx((0.50, 0.42), abs=0.005)
    assert ratio(ceaf(response, key)) == pytest.approx((0.43, 0.65), abs=0.005)


def test_clusters_of_all_texts() -> None:
    scores = CoreferenceScores()
    scores.add(GOLD, GOLD)
    assert set(scores.scores().values()) == {1.0}
    scores.add([], GOLD)
    found = scores.scores()
    assert found["coref_muc"] == pytest.approx(2 / 3)  # 3 of 3 links, and 3 of 6
    assert found["coref_f"] == pytest.approx(sum(list(found.values())[1:]) / 3)
    assert CoreferenceScores().scores()["coref_f"] == 0


def test_gap() -> None:
    judged = [
        Judgement(True, True, True),
        Judgement(True, False, True),  # feminine: 1 of 2, 1 of 1
        Judgement(True, True, False),
        Judgement(False, True, False),  # masculine: 1 of 1, 1 of 2
        Judgement(False, False, False),
    ]
    found = gap_scores(judged)
    assert found == pytest.approx(
        {"gap_f": 2 / 3, "gap_masculine": 2 / 3, "gap_feminine": 2 / 3, "gap_bias": 1}
    )
    assert gap_scores(judged[:2])["gap_bias"] == 0
