"""Raw texts read sentence by sentence."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin

import spacy_elmo
from spacy_elmo.text.readers import Texts, blank_pipeline
from spacy_elmo.weights.layout import Card

from ..cli.helpers import succeed
from ..pipeline.helpers import TOLERANCE, max_difference, write_language_model

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

DIALOGUE = [
    '"Go (now)!" he said. [No.] It is -- "well..." -- fine.  Yes.',
    "“Where?” she asked. ‘Over there …’ – (He pointed.) – “I see!”",
    " \t ",
    "„Wohin?“ «Là-bas !» — and then: 'Stop.' (Or not?) [sic] {ok.} ¿Sí? ¡No!",
    "«He left.»\u2003»Why?« ... 'cause\u00a0he could. )",
    "A (page\x0c. Next) \u2028line \x85 here.\u2029And",
    ". \u3000",
]


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


def write_dialogue(room: Path) -> list[Path]:
    """The same lines in every format."""
    nlp, lines = spacy.blank("en"), "".join(f"{line}\n" for line in DIALOGUE)
    objects = "".join(json.dumps({"text": line, "n": 1}) + "\n" for line in DIALOGUE)
    (room / "a.txt").write_text(lines, encoding="utf-8")
    (room / "b.txt.gz").write_bytes(gzip.compress(lines.encode()))
    (room / "c.jsonl").write_text(objects)
    DocBin(docs=nlp.pipe(DIALOGUE)).to_disk(room / "e.spacy")
    rows = [("n", "text"), *((n, line) for n, line in enumerate(DIALOGUE))]
    with open(room / "f.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    (room / "h.csv.xz").write_bytes(lzma.compress((room / "f.csv").read_bytes()))
    pyarrow.parquet.write_table(pyarrow.table({"text": DIALOGUE}), room / "i.parquet")
    succeed("tokenize", room / "a.txt", room / "shards")
    return [*sorted(file for file in room.iterdir() if file.is_file()), room / "shards"]


def test_any_format_has_the_same_sentences(tmp_path: Path) -> None:
    """For all that reads corpora: marks stay with the sentence that they close, none is empty."""
    weights = write_language_model(tmp_path / "weights", ["he", "she", "."])
    (tmp_path / "texts").mkdir()
    expected = [
        ['"', "Go", "(", "now", ")", "!", '"'],
        ["he", "said", ".", "["],
        ["No", ".", "]"],
        ["It", "is", "--", '"', "well", "...", '"', "--", "fine", "."],
        ["Yes", "."],
    ]
    found: dict[str, Any] = {}
    for file in write_dialogue(tmp_path / "texts"):
        name = file.name
        if name != "shards":
            sentences = list(Texts(file, "en").sentences())
            assert sentences[: len(expected)] == expected
            assert len(sentences) == 23 and all(map(all, sentences)) and all(sentences)
            assert not any(map(str.isspace, (word for words in sentences for word in words)))
            found.setdefault("sentences", sentences)
            assert sentences == found["sentences"], name
        measured = json.loads(succeed("perplexity", file, "-w", weights, "--json"))
        del measured["text"]
        assert measured == found.setdefault("measured", measured), name
        out = tmp_path / f"{name}.npy"
        spacy_elmo.encode(file, out, weights=str(weights), level="sentences")
        vectors = np.load(out)
        assert max_difference([vectors], [found.setdefault("vectors", vectors)]) <= TOLERANCE, name
