import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from spacy_elmo.text.segments import sentence_bounds, windows

VOCAB = spacy.blank("xx").vocab
SENTENCIZER = Sentencizer()
MARKS = [*Sentencizer.default_punct_chars, ")", '"', "”", "„", "¿", ",", "-", "...", "?!", "x."]
WORDS = st.sampled_from(["a", "B", "3"]) | st.sampled_from(MARKS)
SPACES = st.sampled_from([" ", "\n", "\t ", "\u2003"])


@given(st.lists(WORDS, max_size=20))
def test_same_sentences_as_the_sentencizer_for_any_punctuation(words):
    doc = Doc(VOCAB, words=words)
    found = [[doc[i].text for i in tokens] for tokens in sentence_bounds(doc).tokens]
    expected = SENTENCIZER(doc.copy()).sents if words else []
    assert found == [[token.text for token in sent] for sent in expected]


@given(st.lists(WORDS | SPACES, max_size=20))
def test_whitespace_changes_no_sentence(words):
    doc = Doc(VOCAB, words=words)
    found, bounds = sentence_bounds(doc)
    without = Doc(VOCAB, words=[word for word in words if not word.isspace()])
    found_without, bounds_without = sentence_bounds(without)
    assert bounds == bounds_without
    assert [doc[i].text for i in found] == [without[i].text for i in found_without]
    assert not any(doc[i].is_space for i in found)


@pytest.mark.parametrize("segments", ["auto", "sents", "doc"])
def test_own_sentences_come_first(segments):
    words = ["One", ".", "Two", "\n", "three", "."]
    starts = [word in ("One", "\n") for word in words]
    found, bounds = sentence_bounds(Doc(VOCAB, words=words, sent_starts=starts), segments)
    assert found.tolist() == [0, 1, 2, 4, 5]
    assert bounds == ([(0, 5)] if segments == "doc" else [(0, 3), (3, 5)])


@pytest.mark.parametrize(
    ("sents", "bounds"),
    [
        ([(2, 5)], [(0, 2), (2, 4)]),  # the first one starts later
        ([(1, 2), (4, 5)], [(0, 1), (1, 3), (3, 4)]),  # with gaps
        ([(4, 5), (0, 2)], [(0, 3), (3, 4)]),  # unordered
        ([(0, 3), (1, 5), (1, 2)], [(0, 1), (1, 4)]),  # overlapping
        ([(3, 5)], [(0, 3), (3, 4)]),  # starts with whitespace
        ([], [(0, 4)]),
    ],
)
@pytest.mark.parametrize("segments", ["auto", "sents"])
@pytest.mark.parametrize("is_annotated", [True, False])
def test_each_word_is_in_one_sentence_of_a_hook(sents, bounds, segments, is_annotated):
    words = ["One", "two", "three", " ", "four"]
    doc = Doc(VOCAB, words=words, sent_starts=[True] * 5 if is_annotated else None)
    doc.user_hooks["sents"] = lambda doc: (doc[start:end] for start, end in sents)
    assert sentence_bounds(doc, segments).bounds == bounds


@pytest.mark.parametrize("segments", ["auto", "sents", "doc"])
@pytest.mark.parametrize("words, kept", [([], []), ([" "], []), (["\n", "."], [1])])
def test_few_words(segments, words, kept):
    """Sentences of whitespace vanish."""
    doc = Doc(VOCAB, words=words, sent_starts=[True] * len(words))
    found, bounds = sentence_bounds(doc, segments)
    assert (found.tolist(), bounds) == (kept, [(0, 1)] * len(kept))


def test_missing_sentences():
    with pytest.raises(ValueError, match=r'segments = "sents".*sentencizer'):
        sentence_bounds(Doc(VOCAB, words=["a", "b"]), "sents")


@given(st.integers(1, 60), st.data())
def test_windows_tile_a_sentence(max_words, data):
    n_words = data.draw(st.integers(1, 5 * max_words))
    pieces = list(windows(n_words, max_words))
    kept = [i for _, (start, end) in pieces for i in range(start, end)]
    assert kept == list(range(n_words))
    assert all(last > first for _, (first, last) in pieces)
    for (start, end), (first, last) in pieces:
        assert 0 <= start <= first and last <= end <= n_words
        assert end - start == min(max_words, n_words)
        context = max_words // 4 // 2  # on the sides where the sentence goes on
        assert start == 0 or first - start >= context
        assert end == n_words or end - last >= context
    assert len(pieces) == 1 or n_words > max_words
