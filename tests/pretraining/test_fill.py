import math

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.fill import PLACES_AT_ONCE, FillIn
from spacy_elmo.pretraining.softmax import SoftmaxHead, log_uniform
from spacy_elmo.pretraining.vocab import SPECIALS, Vocabulary

CONFIG = BiLMConfig.from_dict(
    {"filters": [[1, 4], [2, 4]], "projection_dim": 6, "dim": 8, "n_layers": 2, "n_highway": 1}
)
WORDS = ["the", ",", "river", "of", ".", "sea", "into", "'s", "ran"]
SENTENCE = ["the", "river", "ran", "into", "the", "sea"]


@pytest.fixture(scope="module")
def fill_in() -> FillIn:
    torch.manual_seed(0)
    vocab = Vocabulary([*SPECIALS, *WORDS])
    return FillIn(BiLM(CONFIG).eval(), SoftmaxHead(len(vocab), 6), vocab)


def test_guesses_are_words_by_falling_probability(fill_in: FillIn) -> None:
    for guesses in fill_in.fill(SENTENCE, 2, 50):
        words, shares = zip(*guesses, strict=True)
        assert set(words) == {"the", "river", "of", "sea", "into", "ran"}
        assert list(shares) == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert [len(guesses) for guesses in fill_in.fill(SENTENCE, 2, 3)] == [3, 3, 3]


def test_what_stands_in_the_blank_is_not_read(fill_in: FillIn) -> None:
    for place in (0, 3, 5):
        other = [*SENTENCE[:place], "___", *SENTENCE[place + 1 :]]
        for a, b in zip(fill_in.fill(SENTENCE, place), fill_in.fill(other, place), strict=True):
            assert [word for word, _ in a] == [word for word, _ in b]
            assert [p for _, p in a] == pytest.approx([p for _, p in b], abs=1e-6)


def test_each_direction_sees_its_own_side(fill_in: FillIn) -> None:
    before = fill_in.fill(SENTENCE, 2)
    right = fill_in.fill([*SENTENCE[:4], "of", "sea"], 2)
    left = fill_in.fill(["of", *SENTENCE[1:]], 2)
    assert dict(right.forward) == pytest.approx(dict(before.forward))
    assert dict(right.backward) != pytest.approx(dict(before.backward))
    assert dict(left.backward) == pytest.approx(dict(before.backward))
    assert dict(left.forward) != pytest.approx(dict(before.forward))


def test_both_is_the_product_over_the_prior(fill_in: FillIn) -> None:
    """Against the formula written out in plain numbers, for the second word of a sentence."""
    model, head = fill_in.model, fill_in.head
    with torch.no_grad():
        words = ["<S>", *SENTENCE, "</S>"]
        layers, _ = model(model.encode(words), torch.arange(8), [8])
        forward = head(layers[-1, 1, :6]).double().exp().tolist()
        backward = head(layers[-1, 3, 6:]).double().exp().tolist()
    prior = [math.exp(x) for x in log_uniform(len(fill_in.vocab)).tolist()]
    joint = [f * b / p for f, b, p in zip(forward, backward, prior, strict=True)]
    total = sum(joint[3:])
    hidden = fill_in.hidden(SENTENCE)
    expected = fill_in.expected(hidden[0][1:2], hidden[1][1:2])
    assert expected.both[0, 3:].exp().tolist() == pytest.approx([x / total for x in joint[3:]])
    assert expected.forward[0, 3:].exp().tolist() == pytest.approx(
        [x / sum(forward[3:]) for x in forward[3:]]
    )
    assert all((row[0, :3] == -math.inf).all() for row in expected)


def test_surprises(fill_in: FillIn) -> None:
    sentence = ["the", "unheard", *SENTENCE[1:], "."] * (PLACES_AT_ONCE // 6)
    found = {surprise.place: surprise for surprise in fill_in.surprises(sentence, 2)}
    assert list(found) == [i for i, word in enumerate(sentence) if word != "unheard"]
    for place in (0, 4, len(sentence) - 1):
        hidden = fill_in.hidden(sentence)
        row = fill_in.expected(hidden[0][place : place + 1], hidden[1][place : place + 1]).both[0]
        log_p = float(row[fill_in.vocab[sentence[place]]])
        assert found[place].bits == pytest.approx(-log_p / math.log(2), abs=1e-4)
        assert len(found[place].guesses) == 2
