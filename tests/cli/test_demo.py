import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from typer.testing import CliRunner

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.cli import app
from spacy_elmo.cli.demo import accuracy, built_in_contexts, layer_cosines, read_sentences
from spacy_elmo.lm.head import save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.senses.occurrences import MOST_WORDS, Context, similarities, split_sentences
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import HEAD, save_bilm

from ..pipeline.helpers import write_language_model, write_weights

CONFIG = BiLMConfig.from_dict(
    {"filters": [[1, 8], [2, 8]], "projection_dim": 8, "dim": 16, "n_layers": 2, "n_highway": 1}
)
ROW = re.compile(r"^ +(-?\d\.\d\d) ([✔✘]) (\w+) +(.*\[(\w+)\].*)$", re.MULTILINE)
BANKS = "The bank lends money. A bank of sand. Each bank is closed. He sat on the bank."


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    save_bilm(BiLM(CONFIG), path)
    counts = Counter(word for _, _, sentence in read_sentences() for word in sentence.split())
    vocab = Vocabulary([*SPECIALS, ".", ",", *counts])
    save_head(SoftmaxHead(len(vocab), 8), vocab, path)
    return path


@pytest.fixture(scope="module")
def no_head(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("no_head")
    for file in weights.iterdir():
        if file.name != HEAD:
            (path / file.name).write_bytes(file.read_bytes())
    return path


def demo(*arguments: object) -> tuple[int, str]:
    """Run the command; its exit code and what it printed."""
    result = CliRunner().invoke(app, ["demo", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


# The sentences


def test_sentences_are_enough_for_every_sense() -> None:
    sentences = read_sentences()
    senses = Counter((word, sense) for word, sense, _ in sentences)
    words = Counter(word for word, _ in senses)
    assert min(senses.values()) >= 3
    assert min(words.values()) >= 2
    assert len({sentence for _, _, sentence in sentences}) == len(sentences)
    tokenizer = spacy.blank("en").tokenizer
    for word, _, sentence in sentences:
        assert [token.text for token in tokenizer(sentence)].count(word) == 1, sentence


def test_a_text_without_punctuation_is_cut() -> None:
    text = "  " + "they sat on the bank " * (MOST_WORDS // 4)
    parts = list(split_sentences(spacy.blank("en").make_doc(text)))
    assert [len(part) for part in parts] == [MOST_WORDS, MOST_WORDS // 4]
    assert "".join(part.text_with_ws for part in parts).strip() == text.strip()


# The tour


def test_tour(weights: Path) -> None:
    code, output = demo("--weights", weights)
    assert code == 0
    assert "\x1b" not in output
    titles = re.findall(r"^── (\w+)", output, flags=re.MULTILINE)
    assert titles == ["One", "How", "Filling"]
    # Three neighbours of the first sentence of each sense of four words, by falling cosine.
    rows, sentences = ROW.findall(output), read_sentences()
    shown = ["bank", "play", "stick", "bat"]
    senses = list(dict.fromkeys((word, sense) for word, sense, _ in sentences if word in shown))
    assert [row[4] for row in rows] == [word for word, _ in senses for _ in range(3)]
    for number, (word, own) in enumerate(senses):
        block = rows[3 * number : 3 * number + 3]
        cosines = [float(cosine) for cosine, *_ in block]
        assert cosines == sorted(cosines, reverse=True)
        for _, mark, sense, sentence, _ in block:
            assert (word, sense, re.sub(r"[][]", "", sentence)) in sentences
            assert (mark == "✔") == (sense == own)
    # Four sentences are filled in three ways.
    assert output.count("___") == 4
    for name in ("left to right", "right to left", "both"):
        assert len(re.findall(rf"^    {name}  +\S", output, flags=re.MULTILINE)) == 4
    for special in SPECIALS:
        assert special not in output


def test_tour_counts_every_sentence(weights: Path) -> None:
    _, output = demo("-w", weights)
    sentences = read_sentences()
    assert f"Each of {len(sentences)} sentences" in output
    found = dict(re.findall(r"^  (\S.*\S)  +(\d+)%", output, flags=re.MULTILINE))
    assert list(found) == ["layer 0", "layer 1", "layer 2", "surroundings"]
    of_word = Counter(word for word, _, _ in sentences)
    of_sense = Counter((word, sense) for word, sense, _ in sentences)
    chance = [(of_sense[word, sense] - 1) / (of_word[word] - 1) for word, sense, _ in sentences]
    assert found["layer 0"] == f"{100 * np.mean(chance):.0f}"


def test_the_nearest_context_mostly_has_the_same_meaning() -> None:
    """With the embedded biLM: far more often than by any of its layers."""
    _, output = demo()
    found = dict(re.findall(r"^  (\S.*\S)  +(\d+)%", output, flags=re.MULTILINE))
    assert int(found["surroundings"]) >= 80 > 10 + int(found["layer 2"])


# The user's text


def test_repeated_words(weights: Path) -> None:
    code, output = demo("-w", weights, "--text", BANKS)
    assert code == 0
    lines = output.split("bank, 4 times")[1].split("\n\n")[0].splitlines()
    found = sorted(line.strip() for line in lines if "[bank]" in line)
    assert [line.replace("[bank]", "bank") for line in found] == [
        "A bank of sand.", "Each bank is closed.", "He sat on the bank.", "The bank lends money."
    ]  # fmt: skip
    assert "Filling" not in output


def test_many_repeated_words(weights: Path) -> None:
    names = ("stone", "tree", "house", "road", "cloud", "field", "lamp", "chair")
    text = " ".join(f"The {name} fell." * (i + 2) for i, name in enumerate(names))
    _, output = demo("-w", weights, "--text", text * 3)
    shown = re.findall(r"^  (\w+), (\d+) times$", output, flags=re.MULTILINE)
    assert shown == [
        ("fell", "132"), ("chair", "27"), ("lamp", "24"), ("field", "21"), ("cloud", "18"),
        ("road", "15"),
    ]  # fmt: skip
    assert output.count("[chair]") == 12


def test_without_a_head(no_head: Path) -> None:
    for arguments in [(), ("-t", "A bank and ___.")]:
        code, output = demo("-w", no_head, *arguments)
        assert code == 0 and "left to right" not in output
        assert output.replace("\n", " ").count("have no language-model head") == 1


def test_blanks(weights: Path) -> None:
    code, output = demo("-w", weights, "-t", "Let's ___ to it. Then ______, a bank, (___).")
    assert code == 0
    assert "Let's ___ to it." in output
    assert "Then ___, a bank, (___)." in output
    assert len(re.findall("^    both  ", output, flags=re.MULTILINE)) == 3
    assert "more than once" not in output
    assert "Nothing to show" not in output


@pytest.mark.parametrize("text", ["zzgl", "?!", "Ὀδυσσεύς 🌍 \udc80", "The bat read my letter"])
def test_text_with_nothing(weights: Path, text: str, tmp_path: Path) -> None:
    code, output = demo("-w", weights, "-t", text)
    assert code == 0
    assert "Nothing to show" in output
    code, output = demo("-w", weights, "-t", text, "-o", tmp_path / "demo.html")
    has_surprisal = text == "The bat read my letter"  # whose words the head knows
    assert code == (0 if has_surprisal else 1)
    assert (tmp_path / "demo.html").exists() == has_surprisal
    assert ("nothing to draw" in output.replace("\n", " ")) != has_surprisal


def test_file(weights: Path, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("\ufeff" + BANKS.replace(" ", "\n\n"), encoding="utf-8")
    assert demo("-w", weights, "--file", file) == demo("-w", weights, "--text", BANKS)


def test_long_file(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.cli.demo.MAX_CHARACTERS", len(BANKS))
    file = tmp_path / "text.txt"
    file.write_text(f"{BANKS} And a fifth bank.", encoding="utf-8")
    code, output = demo("-w", weights, "--file", file)
    assert code == 0
    assert f"Only the first {len(BANKS)} characters" in output
    assert "bank, 4 times" in output


# Other languages


@pytest.fixture
def german(tmp_path: Path) -> Path:
    path = write_language_model(tmp_path / "german", ["Bank", "die"], Card({"lang": "de"}))
    return path


def test_the_text_is_read_in_the_language_of_the_weights(german: Path) -> None:
    # "die" and "und" are stop words in German alone, "am" in both.
    text = "Die Bank und die Bank am Fluss. He said so, and he said it."
    code, output = demo("-w", german, "-t", text)
    assert code == 0
    assert "Bank" in output and "die," not in output and "und," not in output
    assert "said, 2 times" in output and "he, 2 times" in output
    with pytest.warns(UserWarning, match="trained on 'de'"):
        code, output = demo("-w", german, "--lang", "en", "-t", text)
    assert (code, "die, 2 times" in output, "he, 2 times" in output) == (0, True, False)


def test_the_tokenizer_is_that_of_the_weights(tmp_path: Path) -> None:
    meta = {"lang": "ko", "tokenizer": "spacy.Tokenizer.v1"}
    weights = write_weights(tmp_path / "korean", card=Card(meta))
    code, output = demo("-w", weights, "-t", "은행 은행 은행")
    assert code == 0
    assert "은행, 3 times" in output


def test_built_in_sentences_are_for_english_weights(german: Path) -> None:
    code, output = demo("-w", german)
    assert code == 1
    output = " ".join(output.split())
    assert "sentences are English, but the language of" in output and "is 'de'" in output
    assert "--text or --file" in output


# Failures


def test_failures(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes("Café".encode("latin-1"))
    for arguments, said in (
        (["--text", ""], "The text is empty"),
        (["--text", "a", "--file", "b"], "not both"),
        (["--file", tmp_path / "missing.txt"], "missing.txt: there is no such file"),
        (["--file", tmp_path], "it is not a regular file"),
        (["--file", tmp_path / "empty.txt"], "The text is empty"),
        (["--file", tmp_path / "latin.txt"], "latin.txt: 'utf-8' codec"),
    ):
        code, output = demo("-w", weights, *arguments)
        assert (code, said in " ".join(output.split())) == (1, True), output


def test_wrong_weights(weights: Path, tmp_path: Path) -> None:
    code, output = demo("-w", "nowhere")
    assert code == 1
    assert "Cannot find the ELMo weights 'nowhere'" in output
    for file in weights.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / HEAD).write_bytes(b"damaged")
    code, output = demo("-w", tmp_path)
    assert code == 1
    assert HEAD in output


# The parts


def right(senses: str, vectors: np.ndarray, layer: int) -> list[float]:
    """The `accuracy` of contexts by one of their layers, a constant one and this one."""
    pairs = zip(senses, vectors, strict=True)
    contexts = [
        Context(("", "x", ""), vector, np.stack([np.ones_like(vector), vector]), sense)
        for sense, vector in pairs
    ]
    return accuracy(contexts, layer_cosines(contexts, layer)).tolist()


def test_accuracy() -> None:
    vectors = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [1, 0.3]])
    by_chance = [0.25, 0.25, 0.5, 0.5, 0.5]
    assert right("aabbb", vectors, 0) == by_chance  # all tie
    assert right("aabbb", vectors, 1) == [1, 1, 1, 1, 0]
    # Two that are equally near count half each.
    assert right("aab", np.array([[1, 0], [1, 1], [1, -1]]), 1)[0] == 0.5


def test_importing_the_command_is_light() -> None:
    """Every `spacy` command imports it."""
    code = "import sys, spacy_elmo.cli.demo; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
    modules = output.decode().split()
    assert "spacy_elmo.cli.demo" in modules
    assert "spacy_elmo.bilm.model" not in modules


# The page of pictures


def test_page(weights: Path, tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    code, output = demo("-w", weights, "--output", page)
    assert code == 0 and str(page) in output.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    for part in (">Senses of “bank”</text>", ">Occurrences of “bank”</text>", "Surprisal"):
        assert part in text
    n = sum(word == "bank" for word, _, _ in read_sentences())
    assert text.count('<li id="context-') == n
    assert "http" not in text.replace('"http://www.w3.org', "")
    listed = re.findall(r">(money|river): [^<]*\[bank\][^<]*</text>", text)
    assert listed == ["money"] * (n // 2) + ["river"] * (n // 2)


def test_page_compares_the_word_and_not_its_sentences(tmp_path: Path) -> None:
    """With the embedded biLM: the most similar other one of nearly each has the same sense."""
    page = tmp_path / "demo.html"
    assert demo("-o", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    found = re.search(r"for (\d+) of 10, the most similar other one has the same sense", text)
    assert found and int(found[1]) >= 8
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"store": ["layers"]})
    cosines = similarities(built_in_contexts(nlp)[1]["bank"])
    shown = re.findall(r">(-?\d\.\d\d)</text>", text)
    assert [float(number) for number in shown] == pytest.approx(cosines.ravel(), abs=0.0051)


@pytest.mark.parametrize("library", ["matplotlib", "sklearn"])
def test_page_without_the_extra(
    library: str, no_head: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    code, output = demo("-w", no_head, "-t", BANKS, "-o", tmp_path / "demo.html")
    assert code == 1 and "spacy-elmo[viz]" in output


def test_page_of_own_text(no_head: Path, tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    code, _ = demo("-w", no_head, "-o", page, "--text", BANKS)
    text = page.read_text(encoding="utf-8")
    assert code == 0 and text.count('<li id="context-') == 4 and "Surprisal" not in text
    assert "Occurrences of “bank”</text>" in text and "same sense" not in text
    code, output = demo("-w", no_head, "-o", page, "--text", "A single bank.")
    assert code == 1 and "nothing to draw" in output.replace("\n", " ")
    assert page.read_text(encoding="utf-8") == text
    code, output = demo("-w", no_head, "-o", tmp_path / "demo.png")
    assert code == 1 and "written to an .html file" in output.replace("\n", " ")
