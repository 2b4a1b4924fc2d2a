import io
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

from spacy_elmo.bilm.base_weights import Card
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.own_weights import HEAD, save_bilm
from spacy_elmo.cli import app
from spacy_elmo.cli.demo_contexts import (
    NOUNS,
    accuracy,
    layer_cosines,
    read_sentences,
)
from spacy_elmo.cli.demo_screen import Screen, clip
from spacy_elmo.lm.head import save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.senses import Context

from ..pipeline.helpers import write_language_model, write_weights

CONFIG = BiLMConfig.from_dict(
    {"filters": [[1, 8], [2, 8]], "projection_dim": 8, "dim": 16, "n_layers": 2, "n_highway": 1}
)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
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


def demo(*arguments: object, columns: int = 80) -> tuple[int, str]:
    """Run the command; its exit code and what it printed."""
    environment = {"COLUMNS": str(columns)}
    result = CliRunner().invoke(app, ["demo", *map(str, arguments)], env=environment)
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
    assert set(NOUNS) < set(words)
    assert len({sentence for _, _, sentence in sentences}) == len(sentences)
    tokenizer = spacy.blank("en").tokenizer
    for word, _, sentence in sentences:
        assert [token.text for token in tokenizer(sentence)].count(word) == 1, sentence


# The tour


def test_tour(weights: Path) -> None:
    code, output = demo("--weights", weights)
    assert code == 0
    assert "\x1b" not in output
    lines = output.splitlines()
    assert max(map(len, lines)) <= 80
    titles = [line for line in lines if line.startswith("── ")]
    assert [title.split()[1] for title in titles] == ["One", "How", "Filling"]
    # Every neighbour stands beside a static cosine of 1, with the word marked.
    rows = [line for line in lines if re.match(r" +-?\d\.\d\d +-?\d\.\d\d  [✔✘…] ", line)]
    senses = Counter((word, sense) for word, sense, _ in read_sentences())
    shown = ["bank", "play", "stick", "bat"]
    assert len(rows) == 4 * sum(word in shown for word, _ in senses)
    assert all(line.split()[1] == "1.00" for line in rows)
    marked = list(dict.fromkeys(re.findall(r"\[(\w+)\]", "\n".join(rows))))
    assert marked == shown
    # The neighbours come by falling cosine.
    block = [float(line.split()[0]) for line in rows[:4]]
    assert block == sorted(block, reverse=True)
    # Four sentences are filled in three ways.
    assert output.count("[___]") == 4
    for name in ("left to right", "right to left", "both"):
        assert len(re.findall(rf"^    {name}  +\S", output, flags=re.MULTILINE)) == 4
    for special in SPECIALS:
        assert special not in output


def test_tour_counts_every_occurrence(weights: Path) -> None:
    _, output = demo("-w", weights)
    sentences = read_sentences()
    assert f"Each of the {len(sentences)} occurrences" in output.replace("\n", " ")
    found = dict(re.findall(r"^  (\S.*\S)  +(\d+)%", output, flags=re.MULTILINE))
    assert list(found) == [
        "picked at random",
        "static vector (layer 0)",
        "ELMo layer 1",
        "ELMo layer 2",
        "mean of all (doc.tensor)",
        "surroundings",
    ]
    assert found["picked at random"] == found["static vector (layer 0)"]
    by_word = re.findall(r"(\w+) (\d+)/(\d+) \(", output)
    assert sum(int(n) for _, _, n in by_word) == len(sentences)
    share = sum(int(n) for _, n, _ in by_word) / len(sentences)
    assert f"{share:.0%}" == found["surroundings"] + "%"


def test_tour_options(weights: Path) -> None:
    _, output = demo("-w", weights, "--n", 1, "--all", columns=100)
    assert max(map(len, output.splitlines())) <= 100
    rows = [line for line in output.splitlines() if re.search(r"1\.00  [✔✘…] ", line)]
    assert len(rows) == 2 * len({(word, sense) for word, sense, _ in read_sentences()})
    assert "--all shows all" not in output


def test_tour_without_a_head(no_head: Path) -> None:
    code, output = demo("-w", no_head)
    assert code == 0
    assert "have no language-model head" in output.replace("\n", " ")
    assert "left to right" not in output


def test_the_nearest_context_mostly_has_the_same_meaning() -> None:
    """With the embedded biLM: far more often than by any of its layers."""
    _, output = demo()
    found = dict(re.findall(r"^  (\S.*\S)  +(\d+)%", output, flags=re.MULTILINE))
    assert int(found["surroundings"]) >= 80 > 10 + int(found["ELMo layer 2"])


# The user's text


def test_repeated_words(weights: Path) -> None:
    code, output = demo("-w", weights, "--text", BANKS)
    assert code == 0
    assert "bank, 4 times" in output
    rows = re.findall(r"^ +(\d) → +(\d) +-?\d\.\d\d  .*\[bank\]", output, flags=re.MULTILINE)
    assert sorted(i for i, _ in rows) == ["1", "2", "3", "4"]
    assert all(i != j for i, j in rows)
    assert "Filling" not in output
    assert "surprises" not in output


def test_many_repeated_words(weights: Path) -> None:
    names = ("stone", "tree", "house", "road", "cloud", "field", "lamp", "chair")
    _, output = demo("-w", weights, "--text", " ".join(f"The {name} fell." * 14 for name in names))
    assert "stone, first 12 of 14" in output
    assert "6 of 9 repeated words are shown" in output


def test_blanks(weights: Path) -> None:
    code, output = demo("-w", weights, "-t", "Let's ___ to it. Then ______, a bank, (___).")
    assert code == 0
    assert "Let's [___] to it." in output
    assert "Then [___], a bank, (___)." in output
    assert output.count("both  ") == 3
    assert "Nearest contexts among the built-in sentences" in output  # of bank


def test_text_with_neither(weights: Path) -> None:
    code, output = demo("-w", weights, "-n", 2, "-t", "The bat read my letter quietly")
    assert code == 0
    for word in ("bat", "letter"):
        assert len(re.findall(rf"^  ELMo static ▸ .*\[{word}\]", output, flags=re.MULTILINE)) == 1
        # The two nearest and the farthest; nothing is right or wrong without a sense.
        rows = re.findall(rf"^ +-?\d\.\d\d .*\[{word}\]", output, flags=re.MULTILINE)
        assert len(rows) == 3
        assert not re.search("[✔✘]", "".join(rows))
    surprises = output.split("surprises the language model")[1]
    assert "quietly" not in "".join(re.findall(r"\[\w+\]", surprises))
    bits = [float(x) for x in re.findall(r"^ +(\d+\.\d)  ", surprises, flags=re.MULTILINE)]
    assert len(bits) == 4  # quietly is outside of the vocabulary
    assert bits == sorted(bits, reverse=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zzgl", "None of the words is in its vocabulary"),
        ("?!", "None of the words"),
        ("Ὀδυσσεύς 🌍 \udc80", "To see more"),
    ],
)
def test_text_with_nothing(weights: Path, text: str, message: str) -> None:
    code, output = demo("-w", weights, "-t", text)
    assert code == 0
    assert message in output


def test_text_without_a_head(no_head: Path) -> None:
    for text in ("A bank and ___.", "Nothing here"):
        code, output = demo("-w", no_head, "-t", text)
        assert code == 0
        assert output.replace("\n", " ").count("have no language-model head") == 1


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


def test_the_example_of_the_readme_has_two_groups() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    [text] = re.findall(r"make demo ARGS='--text \"(.*)\"'", readme)
    code, output = demo("--text", text, columns=110)
    assert code == 0
    one, other = output.split("bank, 4 times")[1].split("─────")
    assert one.count("[bank]") == other.count("[bank]") == 2
    assert "river" in one and "money" in other


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
    assert "built-in" not in output  # these sentences are English
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
        assert "\x1b" not in output
    assert demo("-w", weights, "-n", 0)[0] == 2


def test_wrong_weights(weights: Path, tmp_path: Path) -> None:
    code, output = demo("-w", "nowhere")
    assert code == 1
    assert "Cannot load the weights 'nowhere'" in output
    for file in weights.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / HEAD).write_bytes(b"damaged")
    code, output = demo("-w", tmp_path)
    assert code == 1
    assert HEAD in output


# The parts


def right(senses: str, layer: np.ndarray, layers: list[int]) -> list[float]:
    """The `accuracy` of contexts by some of their layers, a constant one and this one."""
    pairs = zip(senses, layer, strict=True)
    contexts = [
        Context(("", "x", ""), vector, np.stack([np.ones_like(vector), vector]), sense)
        for sense, vector in pairs
    ]
    return accuracy(contexts, layer_cosines(contexts, layers)).tolist()


def test_accuracy() -> None:
    layer = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [1, 0.3]])
    by_chance = [0.25, 0.25, 0.5, 0.5, 0.5]
    assert right("aabbb", layer, []) == by_chance
    assert right("aabbb", layer, [0]) == by_chance  # all tie
    assert right("aabbb", layer, [1]) == [1, 1, 1, 1, 0]
    # Two that are equally near count half each.
    assert right("aab", np.array([[1, 0], [1, 1], [1, -1]]), [1])[0] == 0.5


def test_clip() -> None:
    assert clip("one two three", 13) == "one two three"
    assert clip("one two three", 10) == "one two…"
    assert clip("abcdefghij", 5) == "abcd…"
    screen = Screen(colour=False, width=80, file=io.StringIO())
    for word in ("word", "w" * 100):
        line = screen.keyword(("left " * 20, word, " right" * 20), 50)
        assert len(line) <= 50
        assert f"[{word[:10]}" in line


# Colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM", "ANSI_COLORS_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    assert Screen(file=Terminal()).colour
    assert not Screen(file=io.StringIO()).colour
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert not Screen(file=Terminal()).colour


def test_colour_changes_no_word(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, plain = demo("-w", weights)
    monkeypatch.setattr("spacy_elmo.cli.demo_screen.wants_colour", lambda file: True)
    _, coloured = demo("-w", weights)
    assert coloured.count("\x1b[") > 200
    assert "\x1b[1;38;5;6mbank\x1b[0m" in coloured
    seen = ESCAPE.sub("", coloured)
    assert max(map(len, seen.splitlines())) <= 80
    assert "[bank]" not in seen
    scores = [re.findall(r"\d+%|\d\.\d\d", text) for text in (plain, seen)]
    assert scores[0] == scores[1]


def test_output_without_unicode() -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii", newline="\n") as file:
        screen = Screen(width=60, file=file)
        screen.title("Title")
        screen.line("✔ “é” ", "█" * 5)
        file.flush()
        lines = raw.getvalue().decode("ascii").splitlines()
    assert lines[1] == "-- Title " + "-" * 51
    assert lines[2] == "+ ??? #####"


def test_importing_the_command_is_light() -> None:
    """Every `spacy` command imports it."""
    code = "import sys, spacy_elmo.cli.demo; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
    modules = output.decode().split()
    assert "spacy_elmo.cli.demo" in modules
    assert not {"spacy_elmo.bilm.model", "spacy_elmo.cli.demo_views"} & set(modules)


# The page of pictures


def test_page(weights: Path, tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    code, output = demo("-w", weights, "--output", page)
    assert code == 0 and str(page) in output.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    for title in ("Senses of “bank”", "Similarity", "Surprisal"):
        assert f"<h1>{title}</h1>" in text
    assert text.count('<li id="context-') == sum(word == "bank" for word, _, _ in read_sentences())
    assert "http" not in text.replace('"http://www.w3.org', "")


def test_page_of_own_text(no_head: Path, tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    code, _ = demo("-w", no_head, "-o", page, "--text", BANKS)
    text = page.read_text(encoding="utf-8")
    assert code == 0 and text.count('<li id="context-') == 4 and "Surprisal" not in text
    assert demo("-w", no_head, "-o", page, "--text", "A single bank.")[0] == 0
    assert "<h1>" not in page.read_text(encoding="utf-8")
    code, output = demo("-w", no_head, "-o", tmp_path / "demo.png")
    assert code == 1 and "written to an .html file" in output.replace("\n", " ")
