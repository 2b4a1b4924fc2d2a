from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.lm import language_model
from spacy_elmo.lm.language_model import LanguageModel, Surprisal
from spacy_elmo.lm.softmax import log_uniform
from spacy_elmo.lm.vocabulary import SPECIALS
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import save_bilm

from ..pretraining.helpers import log_probabilities, make_model, make_vocab

VOCAB = make_vocab(["the", ",", "river", "of", ".", "sea", "into", "'s", "ran", "7"])
SENTENCE = ["the", "river", "ran", "into", "the", "unheard", "sea", "."]
TOLERANCE = 1e-5


LM = LanguageModel(*make_model(len(VOCAB)), VOCAB, Card({"lang": "en"}, {"LICENSE": "Free.\n"}))
torch.nn.init.normal_(LM.head.weight)  # far from uniform, so that a mistake shows


def by_falling_share(shares: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda pair: -pair[1])


def same_guesses(ours: Sequence[tuple[str, float]], theirs: Sequence[tuple[str, float]]) -> None:
    assert [word for word, _ in ours] == [word for word, _ in theirs]
    assert [p for _, p in ours] == pytest.approx([p for _, p in theirs], abs=TOLERANCE)


def same_surprisals(ours: Surprisal, theirs: Surprisal) -> None:
    np.testing.assert_allclose(ours.forward, theirs.forward, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(ours.backward, theirs.backward, rtol=TOLERANCE, atol=TOLERANCE)
    assert ours.known.tolist() == theirs.known.tolist()


def test_under_autocast_and_outside(tmp_path: Path) -> None:
    LM.save(tmp_path / "weights")
    with torch.autocast("cpu", torch.bfloat16):
        lm = LanguageModel.load(tmp_path / "weights")

    def answers() -> tuple[list[tuple[str, float]], ...]:
        return lm.next_words(["the"]), lm.previous_words(["the"]), lm.substitutes(SENTENCE, 2)

    exact, exact_bits = answers(), lm.surprisals([SENTENCE, [], ["the"]])
    with torch.autocast("cpu", torch.bfloat16):
        rounded, bits = answers(), lm.surprisals([SENTENCE, [], ["the"]])
    for ours, theirs in zip(rounded, exact, strict=True):
        assert dict(ours) == pytest.approx(dict(theirs), abs=0.02)
    for one, other in zip(bits, exact_bits, strict=True):
        np.testing.assert_allclose(one.forward, other.forward, atol=0.1)
        np.testing.assert_allclose(one.backward, other.backward, atol=0.1)
    assert answers() == exact


# ---- Words that follow


@pytest.mark.parametrize("n_words", [0, 1, 4])
def test_next_and_previous_words_against_the_definition(n_words: int) -> None:
    words = SENTENCE[:n_words]
    forward, _ = log_probabilities(LM.model, LM.head, [*words, "x"])
    _, backward = log_probabilities(LM.model, LM.head, ["x", *words])
    for guesses, row in [
        (LM.next_words(words, 100), forward[-1]),
        (LM.previous_words(words, 100), backward[0]),
    ]:
        expected = {word: math.exp(row[VOCAB[word]]) for word in VOCAB.words[len(SPECIALS) :]}
        same_guesses(guesses, by_falling_share(expected))
        assert sum(p for _, p in guesses) < 1  # <UNK> and the boundaries have the rest
    assert LM.next_words(words, 2) == LM.next_words(words, 100)[:2]


# ---- Blanks


@pytest.mark.parametrize("place", [0, 2])
def test_fill_against_the_definition(place: int) -> None:
    forward, backward = log_probabilities(LM.model, LM.head, SENTENCE)
    both = forward + backward - log_uniform(len(VOCAB))
    words = [word for word in VOCAB.words[len(SPECIALS) :] if word[0].isalnum()]
    filled = LM.fill(SENTENCE, place, 100)
    for guesses, rows in zip(filled, (forward, backward, both), strict=True):
        shares = {word: math.exp(rows[place, VOCAB[word]]) for word in words}
        total = sum(shares.values())
        same_guesses(guesses, by_falling_share({w: p / total for w, p in shares.items()}))
    assert LM.substitutes(SENTENCE, place, 3) == LM.fill(SENTENCE, place, 3).both
    assert [len(guesses) for guesses in LM.fill(SENTENCE, place, 3)] == [3, 3, 3]


# ---- Surprisal


def test_surprisal_against_the_definition() -> None:
    forward, backward = log_probabilities(LM.model, LM.head, SENTENCE)
    places = [VOCAB[word] for word in SENTENCE]
    found = LM.surprisal(SENTENCE)
    for bits, rows in ((found.forward, forward), (found.backward, backward)):
        assert bits.dtype == np.float32
        expected = -rows[np.arange(len(SENTENCE)), places] / math.log(2)
        np.testing.assert_allclose(bits, expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert found.known.tolist() == [word != "unheard" for word in SENTENCE]


def test_the_vocabulary_has_the_form_in_which_words_are_read() -> None:
    vocab = make_vocab(["Größe", "the", "größe", "of"])
    model, head = make_model(len(vocab), unicode_normalization="NFC", lower_capitals=True)
    lm = LanguageModel(model, head, vocab)
    words = ["the", "Größe"]
    found = lm.surprisal([normalize("NFD", word) for word in words])
    assert found.known.all()
    same_surprisals(found, lm.surprisal(words))
    same_surprisals(lm.surprisal(["THE", "GRÖSSE", "OF"]), lm.surprisal(["the", "grösse", "of"]))


@given(
    st.lists(
        st.lists(
            st.one_of(st.sampled_from([*VOCAB.words, "\ud83d"]), st.text(max_size=60)), max_size=8
        ),
        max_size=6,
    ),
    st.randoms(use_true_random=False),
    st.integers(1, 40),
)
def test_a_sentence_is_read_by_itself(
    sentences: list[list[str]], random: np.random.Generator, batch_words: int
) -> None:
    """Whatever is in it, whatever is read with it, in whatever order and batches."""
    alone = [LM.surprisal(words) for words in sentences]
    assert [len(found.forward) for found in alone] == [len(words) for words in sentences]
    order = list(range(len(sentences)))
    random.shuffle(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language_model, "BATCH_WORDS", batch_words)
        together = LM.surprisals([sentences[i] for i in order])
    for i, found in zip(order, together, strict=True):
        same_surprisals(found, alone[i])
        assert np.isfinite(found.forward).all() and (found.forward > 0).all()
        assert found.known.tolist() == [
            word in VOCAB.ids and word not in SPECIALS for word in sentences[i]
        ]


# ---- On disk


def test_saved_and_loaded(tmp_path: Path) -> None:
    LM.save(tmp_path / "saved")
    again = LanguageModel.load(tmp_path / "saved")
    same_surprisals(again.surprisal(SENTENCE), LM.surprisal(SENTENCE))
    same_guesses(again.substitutes(SENTENCE, 2), LM.substitutes(SENTENCE, 2))
    assert again.card == LM.card


def test_failures(tmp_path: Path) -> None:
    for call in (LM.next_words, LM.previous_words, LM.surprisal, lambda x: LM.fill(x, 0)):
        for words in ("the sea", Doc(Vocab(), words=["the", "sea"])):
            with pytest.raises(ValueError, match=r"list of words, .* found '?the sea"):
                call(words)
    for place in (-1, 2):
        with pytest.raises(ValueError, match=f"position is {place}, but the sentence has 2 words"):
            LM.substitutes(["the", "sea"], place)
    with pytest.raises(ValueError, match="position is 0, but the sentence has 0 words"):
        LM.fill([], 0)
    with pytest.raises(ValueError, match="n is 0; give at least 1"):
        LM.next_words(["the"], 0)
    with pytest.raises(ValueError, match="embedded and downloaded ones are"):
        LanguageModel.load("nowhere")
    save_bilm(LM.model, tmp_path)
    with pytest.raises(ValueError, match=r"without a language model's head.*elmo pretrain"):
        LanguageModel.load(tmp_path)


def test_the_word_at_the_blank_does_not_matter() -> None:
    """Not even for whether the sentence is in capitals."""
    lm = LanguageModel.load("en_sm")
    first, second = (lm.fill(["HE", "SAW", "THE", word, "."], 3) for word in ("dog", "DOG"))
    assert first == second
