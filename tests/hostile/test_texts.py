"""Texts of any characters, and of words without end: vectors, encoded corpora, shards, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_elmo import encode
from spacy_elmo.text.readers import tokenize_files
from spacy_elmo.text.shards import Shards, write_meta, write_shards

from ..pipeline.helpers import (
    PEAK,
    TOLERANCE,
    make_nlp,
    max_difference,
    vectors_of,
    write_language_model,
)

characters = st.characters(exclude_categories=["Cs"])  # spaCy has no lone surrogates
marks = st.text(st.characters(categories=["Mn", "Mc", "Me"]), min_size=1, max_size=40)
words = st.one_of(
    st.text(characters, min_size=1, max_size=20),
    st.builds(str.__mul__, st.sampled_from("aé안𝒳\u0301\0\u202e"), st.integers(50, 2_000)),
    st.builds(str.__add__, st.sampled_from("e안שع"), marks),
    st.lists(st.sampled_from("👩👧🏽❤🏳🌈"), min_size=2, max_size=6).map("\u200d".join),
    st.text(st.characters(categories=["Cc", "Cf"]), min_size=1, max_size=5),  # invisible
    st.text("שלוםمرحبا\u202b\u202e\u2067", min_size=1, max_size=12),  # from right to left
    st.text(" \t\n\r\x0b\x1c\x85\u00a0\u2003\u2028\u3000", min_size=1, max_size=4),
    st.sampled_from(["<S>", "</S>", "<UNK>", "___", "\ufeff", "\ufffe", "\U0010ffff"]),
)
sentences = st.lists(words, max_size=8)
texts = st.lists(words, max_size=8).map(" ".join)


def few(n: int) -> settings:
    """The files and the pipeline that all examples share are not changed by them."""
    shared = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=n, suppress_health_check=[*shared, HealthCheck.data_too_large])


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("weights") / "tiny", ["a", "text"])


@pytest.fixture(scope="module")
def nlp(weights: Path) -> Language:
    return make_nlp(weights)


@few(25)
@given(st.lists(sentences, min_size=1, max_size=4))
def test_any_words(nlp: Language, batch: list[list[str]]) -> None:
    """Finite vectors, the same in any batch; white space has zeros, and changes no other."""

    def docs() -> list[Doc]:
        return [Doc(nlp.vocab, words=words) for words in batch]

    together = list(nlp.pipe(docs()))
    assert [[token.text for token in doc] for doc in together] == batch
    assert max_difference(vectors_of(together), vectors_of([nlp(doc) for doc in docs()])) <= (
        TOLERANCE
    )
    for doc in together:
        words = [token.text for token in doc if not token.is_space]
        is_word = np.array([not token.is_space for token in doc], dtype=bool)
        expected = nlp(Doc(nlp.vocab, words=words)).tensor
        assert max_difference([doc.tensor[is_word]], [expected]) <= TOLERANCE
        assert doc.tensor.any(axis=1).tolist() == is_word.tolist()


@few(8)
@given(st.lists(texts, min_size=1, max_size=6))
@example(["\r", "a\r", ""])
def test_any_corpus_is_encoded(
    nlp: Language, weights: Path, tmp_path_factory: pytest.TempPathFactory, batch: list[str]
) -> None:
    room = tmp_path_factory.mktemp("encode")
    corpus, out = room / "corpus.jsonl", room / "out.npy"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in batch))
    encode(corpus, out, weights=str(weights))
    docs = [nlp(text) for text in batch]
    rows = np.split(np.load(out), np.load(room / "out.offsets.npy")[1:-1])
    assert max_difference(rows, vectors_of(docs)) <= TOLERANCE
    lines = (room / "out.tokens.jsonl").read_text("utf-8").split("\n")[:-1]
    tokens = [json.loads(line)["tokens"] for line in lines]
    assert tokens == [[token.text for token in doc] for doc in docs]


@few(15)
@given(st.lists(sentences, min_size=1, max_size=6), st.sampled_from(["jsonl", "txt", "spacy"]))
@example([["\ufeff"]], "jsonl")
def test_any_text_is_tokenized(
    tmp_path_factory: pytest.TempPathFactory, batch: list[list[str]], suffix: str
) -> None:
    """A shard has every character that is not white space, in order."""
    room, nlp = tmp_path_factory.mktemp("tokenize"), spacy.blank("en")
    path = room / f"corpus.{suffix}"
    joined = [" ".join(words) for words in batch]
    if suffix == "spacy":
        DocBin(docs=[Doc(nlp.vocab, words=words) for words in batch]).to_disk(path)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in joined))
    else:  # a byte order mark at the start of a line is not text
        joined = [text.replace("\n", " ").lstrip("\ufeff") for text in joined]
        path.write_text("\n".join(joined), encoding="utf-8", newline="\n")
    write_shards(tokenize_files(nlp, [path], n_process=1), room / "shards")
    write_meta(room / "shards", "en")  # as `elmo tokenize` does: what is a shard keeps every mark
    shards = Shards(sorted((room / "shards").glob("shard-*")))
    found = "".join(word for words in shards.sentences() for word in words)
    assert found == "".join("".join(joined).split())


MEMORY = r"""
from spacy_elmo import encode
from spacy_elmo.text.readers import tokenize_files

weights, room = sys.argv[1], Path(sys.argv[2])
nlp = spacy.blank("en")
nlp.add_pipe("elmo", config={"model": {"weights": weights}})
nlp.tokenizer = lambda text: Doc(nlp.vocab, words=text.split())  # spaCy's takes long for these

def read(way, n_texts):
    path = room / f"{way}-{n_texts}.txt"
    with open(path, "w") as file:
        for i in range(n_texts):
            # spaCy looks at each character of a word that may be ASCII, or a URL.
            file.write(f"Text : é@{i}{'x' * 500_000} .\n")
    if way == "encode":
        return encode(path, path.with_suffix(".npy"), weights=weights, tokenized=True).n_vectors
    if way == "tokenize":
        return sum(len(words) for words in tokenize_files(nlp, [path], n_process=1))
    n_tokens = 0
    with open(path) as lines:
        while some := [line.rstrip("\n") for line in islice(lines, 4)]:
            with nlp.memory_zone():
                n_tokens += sum(len(doc) for doc in nlp.pipe(some))
    return n_tokens

for way in ("tokenize", "encode", "pipe"):
    assert read(way, 2) == 8
    forget_peak()
    before = peak()
    assert read(way, 24) == 96
    print((peak() - before) / 2**20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
def test_long_words_take_little_memory(weights: Path, tmp_path: Path) -> None:
    """12 MB of words of half a megabyte each never take as much again."""
    command = [sys.executable, "-c", PEAK + MEMORY, str(weights), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    megabytes = [float(line) for line in done.stdout.split()]
    assert len(megabytes) == 3
    assert max(megabytes) < 12
