"""Blanks in a text."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.cli.find_blanks import MARK, find_blanks

NLP = spacy.blank("en")


@pytest.mark.parametrize(
    ("text", "blanks", "shown"),
    [
        ("Let's ___ to it.", 1, "Let's ___ to it."),
        ("____, or “_____”?", 2, "___, or “___”?"),
        ("( ___ )", 1, "( ___ )"),
        ("snake___case __init__ __", 0, ""),
        ("a\n\n ___\tb", 1, "a ___ b"),
        ("", 0, ""),
    ],
)
def test_blanks_are_found(text: str, blanks: int, shown: str) -> None:
    found = find_blanks(NLP, text)
    assert [f"{blank.left}___{blank.right}" for blank in found] == [shown] * blanks


@given(st.lists(st.sampled_from(["___", " ", "a", "?!", "—", "(", "\n", "  ", "安", "'s"])))
def test_any_text(parts: list[str]) -> None:
    for blank in find_blanks(NLP, "".join(parts)):
        assert blank.words[blank.place] == "___"
        assert MARK not in "".join([blank.left, blank.right, *blank.words])
        shown = f"{blank.left}___{blank.right}"
        assert shown.count("___") >= blank.words.count("___") and shown == shown.strip()
