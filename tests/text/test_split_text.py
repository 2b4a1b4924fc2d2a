import spacy

from spacy_elmo.text import readers as module
from spacy_elmo.text.readers import split_text


def test_a_corpus_leaves_few_words_in_the_vocab(monkeypatch):
    paragraphs = [f"Word{i} of{i} a corpus. And{i} more, word{i}!" for i in range(100)]
    expected = list(split_text(spacy.blank("en"), paragraphs))
    nlp = spacy.blank("en")
    at_first = len(list(nlp.vocab))
    monkeypatch.setattr(module, "KEPT_WORDS", at_first + 20)
    monkeypatch.setattr(module, "ZONE_SIZE", 4)  # paragraphs of a zone
    assert list(split_text(nlp, paragraphs)) == expected
    assert at_first + 20 <= len(list(nlp.vocab)) < at_first + 50
    another = spacy.blank("en")
    long = ["a" * 129 + " is no word"]
    assert list(split_text(another, long)) == [long[0].split()]
    assert len(list(another.vocab)) == len(list(spacy.blank("en").vocab))
