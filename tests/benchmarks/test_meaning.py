"""The scripts about layers and meaning at their smallest: probes, text_means, similarity, …"""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import polysemy

from spacy_elmo.cli.demo import read_sentences

from .conftest import REVIEWS, Run
from .test_perplexities import rows


def test_probes(run: Run, data: Path) -> None:
    """Trained and tested on the same words, layers know everything; of all kinds of features."""
    lines = run("probes", data, "--seeds", 0, "--json", "--tasks", "tense", "entities").splitlines()
    found = {(row["task"], row["feature"]): row["scores"] for row in map(json.loads, lines)}
    features = ("0", "1", "2", "all", "forward", "backward")
    assert list(found) == list(product(("tense", "entities"), features))
    assert set(map(tuple, found.values())) == {(100.0,)}


def test_probes_of_another_model(run: Run, data: Path, tmp_path: Path) -> None:
    """Whose vectors name the words, but not in its layer 0, which is all zeros."""
    sentences = [["She", "sang", "."], ["Dogs", "bark", "at", "me"]]
    (tmp_path / "sentences.json").write_text(json.dumps(sentences), encoding="utf8")
    np.save(tmp_path / "other.npy", np.stack([np.zeros((7, 7)), np.eye(7)]).astype("float16"))
    options = ("--tasks", "UPOS", "--seeds", 0, "--embedded", tmp_path, "--model", "other")
    found = rows(run("probes", data, *options))["UPOS"]
    assert found == ["28.6 (28.6–28.6)", "100.0 (100.0–100.0)", "100.0 (100.0–100.0)"]


def test_text_means(run: Run, data: Path, tmp_path: Path) -> None:
    """Tested on the texts that it has learned from, everything knows the classes."""
    sentences = [text.split() for _, text in REVIEWS]
    (tmp_path / "sentences.json").write_text(json.dumps(sentences), encoding="utf8")
    n_words = sum(map(len, sentences))
    np.save(tmp_path / "minilm.npy", np.eye(n_words, dtype="float16")[None])
    options = ("--tasks", "textcat", "intents", "--embedded", tmp_path)
    out = run("text_means", data, "--seeds", 0, 1, *options)
    textcat, intents, _ = (rows(table) for table in out.split("Best on the dev set"))
    assert list(textcat) == [
        "layer 0", "layer 1", "layer 2", "all layers", "tf-idf", "all layers and tf-idf",
        "MiniLM, layer 0", "MiniLM, all layers",
    ]  # fmt: skip
    perfect = ["100.0 (100.0–100.0)"] * 2
    assert all(cells == perfect for cells in (*textcat.values(), *intents.values()))
    assert out.count("Best on the dev set: layer 0") == 2  # the first of equals


def test_similarity(run: Run, data: Path) -> None:
    out = run("similarity", data)
    sentences, in_context, senses = (
        {name: float(value) for name, [value] in rows(table).items()} for table in out.split("\n\n")
    )
    assert sentences["counted words"] == 100
    assert {"compared", "layer 2, forward"} <= set(in_context)
    assert "sentence, layer 0" in in_context and "sentence, layer 0" not in sentences
    assert senses["most frequent sense"] == 60  # 3 of 5
    assert senses["sentence, tf-idf"] == senses["occurrence"] == 100


def test_similarity_of_a_part(run: Run, data: Path) -> None:
    """The first three occurrences are all of the river."""
    out = run("similarity", data, "--only", "sense", "--most", 3)
    assert out.count("accuracy") == 1 and rows(out)["most frequent sense"] == ["100.0"]


def test_all_words(run: Run, data: Path) -> None:
    """Of three instances one is of a lemma that SemCor has not, and one has a single sense."""
    out = run("all_words", data)
    assert out.startswith("| | all 3 | 1 with two senses or more |")
    found = rows(out)
    assert found["most frequent sense"] == ["33.3", "0.0"]
    assert found["layer 2, raw"] == found["occurrence"] == ["66.7", "100.0"]


def test_polysemy(run: Run, tmp_path: Path) -> None:
    """The nearest contexts among the demo's sentences are of the same sense."""
    senses = {sentence: sense for _, sense, sentence in read_sentences()}
    mine = {text for sentences in polysemy.SENTENCES.values() for text in sentences}
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(set(senses) - mine), encoding="utf-8")
    expected = {
        "bank": ["money"], "stick": ["wood", "adhere"], "bat": ["sport", "animal"],
        "spring": ["season", "water"],
    }  # fmt: skip
    out = run("polysemy", corpus, "--words", *expected, "read", "--nearest", 1)
    *found, read = out.strip().split("\n\n")
    for (word, wanted), lines in zip(expected.items(), found, strict=True):
        _, _, words, *sentence_rows = lines.splitlines()
        assert word != "bank" or "banks" in words
        assert len(sentence_rows) == 2
        # Of the second sentence with "bank", en_sm takes one sense for the other.
        for row, sense in zip(sentence_rows, wanted, strict=word != "bank"):
            shown = re.sub(r"^… |\*\*| …$| \(0\.\d+\) \|$", "", row.split(" | ")[1])
            assert [senses[text] for text in senses if shown in text] == [sense]
    assert read.count("does not occur in the corpus") == 2


def test_every_word_is_in_its_sentences() -> None:
    for word, sentences in polysemy.SENTENCES.items():
        assert all(word in re.findall(r"\w+", text) for text in sentences), word


def test_homonyms(run: Run) -> None:
    """The Korean biLM finds more than a random choice, and the token layer does not."""
    found = rows(run("homonyms"))
    assert list(found)[-1] == "all, 42 sentences" and len(found) == 4
    senses, _, token_layer, *_, by_chance = map(float, found["all, 42 sentences"])
    assert by_chance == 33 and senses > by_chance + 10
    assert senses > token_layer
