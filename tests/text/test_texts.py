"""Raw texts read sentence by sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_elmo.text.readers import Texts, blank_pipeline
from spacy_elmo.weights.layout import Card


def test_texts_of_all_forms(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    (tmp_path / "a.txt").write_text("One word. Two words.\n\nThree.\n")
    (tmp_path / "b.jsonl").write_text('{"text": "Four.", "story": "Six."}\n')
    DocBin(docs=[nlp("Five.")]).to_disk(tmp_path / "c.spacy")
    (tmp_path / "d.md").write_text("No text.")
    (tmp_path / "old.txt").mkdir()
    source = Texts([tmp_path, tmp_path / "*.txt"], "en")
    assert [file.name for file in source.files()] == ["a.txt", "b.jsonl", "c.spacy", "a.txt"]
    read = [" ".join(words) for words in source.sentences()]
    assert read[:5] == ["One word .", "Two words .", "Three .", "Four .", "Five ."]
    assert list(Texts(tmp_path / "*.jsonl", "en", column="story").sentences()) == [["Six", "."]]
    with pytest.raises(ValueError, match=r"No texts at '.*nowhere'"):
        Texts(tmp_path / "nowhere", "en").files()


def test_a_tokenizer_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("나는 집에 간다. 너는?\n", encoding="utf-8")
    source = Texts(tmp_path / "a.txt", "ko", "spacy.Tokenizer.v1")
    assert [" ".join(words) for words in source.sentences()] == ["나는 집에 간다 .", "너는 ?"]
    assert source.card() == {"lang": "ko", "tokenizer": "spacy.Tokenizer.v1"}
    with pytest.raises(ValueError, match=r"nothing\.v1"):
        list(Texts(tmp_path / "a.txt", "ko", "nothing.v1").sentences())
    with pytest.raises(ValueError, match="E048"):
        list(Texts(tmp_path / "a.txt", "qqq").sentences())


def test_the_tokenizer_of_the_weights_is_taken_for_their_language() -> None:
    class Korean:
        where = "somewhere"

        def card(self) -> Card:
            return Card({"lang": "ko", "tokenizer": "spacy.Tokenizer.v1"})

    for lang in (None, "ko"):
        nlp = blank_pipeline(Korean(), lang)  # type: ignore[arg-type]
        assert [token.text for token in nlp("너는?")] == ["너는", "?"]
    assert blank_pipeline(Korean(), "en").lang == "en"  # type: ignore[arg-type]
