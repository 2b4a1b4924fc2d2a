"""The scores, against what was computed by hand."""

from __future__ import annotations

import pytest
from paper_tasks.metrics import b_cubed, ceaf, exact_match, muc, token_f1


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
