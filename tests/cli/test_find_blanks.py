"""Blanks in a text."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.cli.find_blanks import BLANK_WORD, find_blanks, prepare, written

NLP = spacy.blank("en")


@pytest.mark.parametrize(
    ("text", "blanks", "shown"),
    [
        ("Let's ___ to it.", 1, "Let's ___ to it."),
        ("____, or “_____”?", 2, "___, or “___”?"),
        ("snake___case __init__ __", 0, "snake___case __init__ __"),
        ("a\n\n ___\tb", 1, "a ___ b"),
    ],
)
def test_blanks_are_found(text: str, blanks: int, shown: str) -> None:
    doc = NLP(prepare(text))
    assert [token.text for token in doc].count(BLANK_WORD) == len(find_blanks(doc)) == blanks
    assert written(doc, 0, len(doc)) == shown


def test_a_blank_stands_in_its_sentence() -> None:
    blanks = find_blanks(NLP(prepare("No. He (___) saw ____. ___!")))
    assert [(blank.left, blank.right) for blank in blanks] == [
        ("He (", ") saw ___."),
        ("He (___) saw ", "."),
        ("", "!"),
    ]
    assert [blank.place for blank in blanks] == [2, 5, 0]
    assert blanks[0].words == ["He", "(", "___", ")", "saw", "___", "."]


@given(
    st.lists(st.sampled_from(["___", " ", "a", "?!", "—", "(", "\n", "  ", "安", "\udc80", "'s"]))
)
def test_any_text(parts: list[str]) -> None:
    doc = NLP(prepare("".join(parts)))
    blanks = find_blanks(doc)
    assert len(blanks) == sum(token.text == BLANK_WORD for token in doc)
    for blank in blanks:
        assert blank.words[blank.place] == "___"
        assert BLANK_WORD not in "".join([blank.left, blank.right, *blank.words])
