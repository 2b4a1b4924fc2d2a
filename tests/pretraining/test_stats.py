from __future__ import annotations

from unicodedata import normalize

from spacy_elmo.bilm.characters import CharacterIds
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining.stats import count_corpus


def test_rare_words_of_a_large_text_are_dropped_and_frequent_ones_are_not() -> None:
    text = ([f"rare{i}", "often", f"rare{i + 1}", "often"] for i in range(5000))
    found = count_corpus(text, max_words=100, max_types=100)
    assert found.is_truncated
    assert len(found.counts) <= 100
    assert (found.counts["often"], found.n_words) == (10_000, 20_000)
    described = found.describe(Vocabulary([*SPECIALS, "often"]), 7)
    assert "20,000 words in 5,000 sentences, 50.00% <UNK>" in described
    assert "too many distinct words to count, the rarest are left out" in described


def test_words_are_counted_in_the_form_in_which_they_are_read() -> None:
    to_ids, words = CharacterIds(1, form="NFC"), ["Größe", normalize("NFD", "Größe"), "a"]
    assert count_corpus([words], 4, to_ids.read).counts == {"Größe": 2, "a": 1}
