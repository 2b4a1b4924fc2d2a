"""Settings say in one sentence what is wrong with them."""

from __future__ import annotations

import pickle
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest

from spacy_elmo.util.settings import Settings, above_zero, at_least, below_one, in_range, one_of


@dataclass(frozen=True)
class Example(Settings):
    title = "The example's setting"
    size: int = at_least(8, 400)
    rate: float = above_zero(1.0)
    dropout: float = below_one(0.5)
    threads: int | None = in_range(1, 1024, None)
    unit: str = one_of("epoch", "step")
    weights: str | list[str] = "en_sm"
    frozen: bool = True
    block: dict[str, Any] | None = None


def test_what_is_set_is_kept() -> None:
    settings = Example(size=8, rate=2, threads=3, unit="step", weights=["a", "b"], block={"x": 1})
    assert asdict(settings) == {
        "size": 8, "rate": 2.0, "dropout": 0.5, "threads": 3, "unit": "step",
        "weights": ["a", "b"], "frozen": True, "block": {"x": 1}
    }  # fmt: skip
    assert isinstance(settings.rate, float)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert replace(settings, size=9).size == 9


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("size", True, "True; it must be a valid integer."),
        ("size", 2**63, "9223372036854775808; it must be less than or equal to"),
        ("rate", float("nan"), "nan; it must be"),
        ("rate", 10**400, "…; it must be a valid number."),
        ("dropout", 1.0, "1.0; it must be less than 1."),
        ("unit", "hour", "'hour'; it must be 'epoch' or 'step'."),
        ("frozen", 1, "1; it must be a valid boolean."),
        ("block", "x", "'x'; it must be a valid dictionary."),
    ],
)
def test_what_is_wrong_is_named(name: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^The example's setting {name} is .*{re.escape(said)}"):
        Example(**{name: value})
    with pytest.raises(ValueError, match=re.escape(said)):
        replace(Example(), **{name: value})


def test_unknown_settings() -> None:
    Example.check_names(["size", "rate"])
    with pytest.raises(ValueError, match="setting expected settings by name, found 5"):
        Example.check_names(5)
    with pytest.raises(ValueError, match=r"unknown settings \['sise'\]; known are \['block', "):
        Example.check_names(["size", "sise"])
