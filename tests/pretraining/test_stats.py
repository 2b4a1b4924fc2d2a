from __future__ import annotations

from unicodedata import normalize

import pytest
import spacy

from spacy_elmo.bilm.characters import CharacterIds
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining.stats import MARKS, CorpusStats, count_corpus


def test_all_that_is_lost_is_counted() -> None:
    found = count_corpus(
        [["a", "b", "a"], ["x" * 49, "ж" * 24], ["c"] * 5, ["ж" * 25]], max_words=4
    )
    assert found.counts == {"a": 2, "b": 1, "c": 5, "x" * 49: 1, "ж" * 24: 1, "ж" * 25: 1}
    assert (found.n_sentences, found.n_long) == (4, 1)
    assert found.describe(Vocabulary([*SPECIALS, "a", "c"]), CharacterIds(1, 50)) == (
        "11 words in 4 sentences, 36.36% <UNK>; 1 sentences of more than 4 words split; "
        "2 words truncated to 48 bytes"
    )


def test_what_loses_nothing_has_a_short_description() -> None:
    vocab = Vocabulary([*SPECIALS, "a"])
    assert count_corpus([["a"] * 4], 4).describe(vocab, CharacterIds(1)) == (
        "4 words in 1 sentences, 0.00% <UNK>"
    )


def test_rare_words_of_a_large_text_are_dropped_and_frequent_ones_are_not() -> None:
    text = ([f"rare{i}", "often", f"rare{i + 1}", "often"] for i in range(5000))
    found = count_corpus(text, max_words=100, max_types=100)
    assert found.is_truncated
    assert len(found.counts) <= 100
    assert (found.counts["often"], found.n_words) == (10_000, 20_000)
    described = found.describe(Vocabulary([*SPECIALS, "often"]), CharacterIds(1, 7))
    assert "20,000 words in 5,000 sentences, 50.00% <UNK>" in described
    assert "at least " in described
    assert "too many distinct words to count, the rarest are left out" in described


def test_words_are_counted_in_the_form_in_which_they_are_read() -> None:
    to_ids, words = CharacterIds(1, form="NFC"), ["Größe", normalize("NFD", "Größe"), "a"]
    found = count_corpus([words], 4, read=to_ids.read)
    assert found.counts == {"Größe": 2, "a": 1}


def test_counting_passes_the_sentences_on() -> None:
    stats = CorpusStats(max_words=2)
    sentences = [["a", "b", "c"], ["a"]]
    assert list(stats.count(sentences)) == sentences
    assert stats == count_corpus(sentences, max_words=2)
    assert (stats.n_words, stats.n_segments, stats.n_long) == (4, 3, 1)


RAW = {
    "en": "The bank raised its rates, and they sat on the bank. Who was it? Nobody knew.",
    "de": "Die Bank erhöhte die Zinsen, sie saßen am Ufer. Wer war es? Keiner weiß es.",
    "ko": "은행이 금리를 올렸다. 그들은 강가에 앉았다, 그리고 떠났다.",
    "hi": "बैंक ने दरें बढ़ाईं, वे किनारे पर बैठे। कौन था?",
    "zh": "银行提高了利率，他们坐在河岸上。\n是谁？",
}


@pytest.mark.parametrize("lang", RAW)
def test_raw_text_is_told_from_tokenized_text(lang: str) -> None:
    raw = [line.split() for line in RAW[lang].splitlines()]
    glued = count_corpus(raw, 100).glued()
    assert glued and all(word[-1] in MARKS for word in glued)
    nlp = spacy.util.get_lang_class("xx" if lang == "ko" else lang)()  # Korean's needs MeCab
    words = [token.text for token in nlp(RAW[lang]) if not token.is_space]
    assert count_corpus([words], 100).glued() == []
    assert count_corpus([[word for word in words if word not in MARKS]], 100).glued() == []


def test_abbreviations_and_free_marks_are_tokenized_text() -> None:
    few = "Mr. Kim of Acme Inc. left the U.S. on Feb. 3 , and came back . He did ! Really ?"
    assert count_corpus([few.split()], 100).glued() == []
    names = [f"{i}th company of the list Inc.".split() for i in range(100)]
    assert count_corpus(names, 100).glued() == []
    assert count_corpus([["...", "?!", ":", "--", "。", "3.5", "a.b"]], 100).glued() == []
