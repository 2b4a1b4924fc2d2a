import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import IndexedSentences
from spacy_elmo.weights.find import find_weights
from spacy_elmo.weights.layout import STATISTICS
from spacy_elmo.weights.statistics import compute_statistics

from ..pipeline.helpers import write_weights

WORDS = ["the", "bank", "raised", "its", "rates", "river", "of", "a", "sat", "they", "on", "."]
SENTENCES = [list(np.random.default_rng(i).permutation(WORDS)[: 3 + i % 9]) for i in range(400)]
SENTENCES = [[str(word) for word in words] for words in SENTENCES]


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return write_weights(tmp_path_factory.mktemp("statistics") / "weights")


@pytest.fixture(scope="module")
def statistics(weights):
    return compute_statistics(find_weights(weights).load(), IndexedSentences(SENTENCES))


def test_moments_of_each_layer(weights, statistics):
    model = find_weights(weights).load()
    with torch.no_grad():
        layers = torch.cat(model.read(SENTENCES)[0], dim=1).double()
    np.testing.assert_allclose(statistics.mean, layers.mean(dim=1), atol=1e-5)
    np.testing.assert_allclose(statistics.std, layers.std(dim=1, correction=0), rtol=1e-4)


def test_moments_of_a_long_text_are_those_of_a_part_of_it(weights, statistics, monkeypatch):
    """Its sentences are spread evenly; words are counted in all of it."""
    monkeypatch.setattr("spacy_elmo.weights.statistics.MAX_WORDS", 1500)  # of some 3600 tokens
    model, text = find_weights(weights).load(), IndexedSentences(SENTENCES)
    found, part = compute_statistics(model, text), IndexedSentences(SENTENCES[::3])
    np.testing.assert_array_equal(found.mean, compute_statistics(model, part).mean)
    assert found.frequencies == statistics.frequencies


def test_autocast_does_not_matter(weights, statistics):
    """They are saved with the weights."""
    with torch.autocast("cpu", torch.bfloat16):
        found = compute_statistics(find_weights(weights).load(), IndexedSentences(SENTENCES))
    for name in ("word_mean", "whitening", "mean", "std"):
        assert np.array_equal(getattr(found, name), getattr(statistics, name))


def test_frequencies_without_boundaries(statistics):
    words = [word for sentence in SENTENCES for word in sentence]
    expected = {word: words.count(word) / len(words) for word in WORDS}
    assert statistics.frequencies == pytest.approx(expected)
    shares = list(statistics.frequencies.values())
    assert shares == sorted(shares, reverse=True)


def test_whitened_words_have_the_identity_as_covariance(weights, statistics):
    words = [f"word{i}{'x' * (i % 7)}" for i in range(300)]
    model = find_weights(weights).load()
    found = compute_statistics(model, IndexedSentences([words]))
    with torch.no_grad():
        vectors = model.encode(words).numpy()
    whitened = (vectors - found.word_mean) @ found.whitening
    values = np.linalg.eigvalsh(np.cov(whitened.T))
    kept = values > 0.5
    np.testing.assert_allclose(values[kept], 1, rtol=0.02)
    np.testing.assert_allclose(values[~kept], 0, atol=0.02)
    assert kept.sum() >= 2


def test_round_trip(weights, statistics):
    assert find_weights(weights).statistics() is None
    (weights / STATISTICS).write_bytes(statistics.to_bytes())
    found = find_weights(weights).statistics()
    (weights / STATISTICS).unlink()
    assert found.frequencies == statistics.frequencies
    for name in ("word_mean", "mean", "std"):
        np.testing.assert_array_equal(getattr(found, name), getattr(statistics, name))
    np.testing.assert_allclose(found.whitening, statistics.whitening, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("std", lambda std: None, "missing"),
        ("std", lambda std: 0 * std, "are none"),
        ("frequencies", lambda shares: shares[1:], "frequencies' has the shape"),
        ("frequencies", lambda shares: 1000 * shares, "are none"),
        ("mean", lambda mean: torch.ones(5, mean.shape[1]), "'mean' has the shape"),  # another biLM
        ("words", lambda words: words.fill_(255), "utf-8"),
    ],
)
def test_damaged_statistics(weights, statistics, name, change, said):
    tensors = load(statistics.to_bytes())
    changed = change(tensors.pop(name))
    data = save(tensors if changed is None else tensors | {name: changed})
    (weights / STATISTICS).write_bytes(data)
    with pytest.raises(ValueError, match=rf"^Cannot read the statistics .*safetensors: .*{said}"):
        find_weights(weights).statistics()
    (weights / STATISTICS).unlink()


def test_a_text_of_one_word():
    assert compute_statistics(None, IndexedSentences([["word"], ["word"]])) is None


def test_a_biLM_of_one_unit():
    model = BiLM(BiLMConfig(filters=((1, 4),), projection_dim=1, dim=1))
    found = compute_statistics(model, IndexedSentences(SENTENCES))
    vectors = model.encode(WORDS).detach().numpy()
    assert np.std((vectors - found.word_mean) @ found.whitening, ddof=1) == pytest.approx(1)
