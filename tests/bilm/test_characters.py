from unicodedata import normalize

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.characters import BOS, EOS, CharacterIds, is_truncated
from spacy_elmo.bilm.config import FORMS
from spacy_elmo.bilm.sentence_batches import id_tensor

from . import reference

any_text = st.text(st.characters(exclude_categories=()), max_size=60)  # surrogates included


def encode_words(words: list[str], max_width: int, max_characters: int = 50) -> torch.Tensor:
    return id_tensor(*CharacterIds(max_width, max_characters)(words))


@pytest.mark.parametrize(
    ("word", "ids"),
    [
        ("", [259, 260]),
        ("é", [259, 0xC3 + 1, 0xA9 + 1, 260]),
        ("a\ud83db", [259, 98, 99, 260]),  # a lone surrogate
        ("<S>", [259, 257, 260]),
        ("</S>", [259, 258, 260]),
        ("<s>", [259, 61, 116, 63, 260]),  # not a boundary
        ("x" * 47 + "é", [259] + [121] * 47 + [0xC3 + 1, 260]),  # cut inside a character
    ],
)
def test_ids_of_known_words(word, ids):
    assert encode_words([word], 1).tolist() == [[*ids, 261][:50]]


@given(st.lists(any_text, min_size=1, max_size=5), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_words_are_read_in_one_form_of_unicode(words, form, other):
    to_ids = CharacterIds(4, 50, form)
    normal = [normalize(form, word) for word in words]
    assert list(to_ids.read(words)) == normal
    assert list(to_ids.read([normalize(other, word) for word in words])) == normal
    assert CharacterIds(4, 50).read(words) == words


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("THE BANK IST ÜBER 3 .", "the bank ist über 3 ."),
        ("The BANK IS OLD", None),
        ("NASA HQ .", None),  # an abbreviation
        ("", None),
        ("THE <S> BANK IS", "the <S> bank is"),
    ],
)
def test_a_sentence_in_capitals(text, read):
    words = text.split()
    assert CharacterIds(4, 50).read(words) == words
    assert list(CharacterIds(4, 50, "NFC", True).read(words)) == (read or text).split()


@given(any_text.filter(lambda word: word not in (BOS, EOS)), st.integers(3, 60))
def test_is_truncated_tells_whether_bytes_are_left_out(word, n):
    every, found = (encode_words([word], 1, limit)[0].tolist() for limit in (10_000, n))
    assert is_truncated(word, n) == (found[-1] != 261 and found != every[:n])


@given(
    st.lists(any_text | st.sampled_from([BOS, EOS]), max_size=5),
    st.integers(1, 7),
    st.integers(3, 60),
)
def test_ids_are_those_of_the_reference_and_one_window_of_padding(words, width, n):
    ids = encode_words(words, width, n)
    expected = [reference.char_ids(word, n) for word in words]
    longest = max((len(each) - each.count(261) for each in expected), default=-width)
    assert ids.dtype == torch.int64
    assert ids.shape == (len(words), min(n, longest + width))
    assert ids.tolist() == [each[: ids.shape[1]] for each in expected]
