"""``python -m spacy elmo convert`` and ``info``."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
import torch
from click.testing import Result
from typer.testing import CliRunner

from spacy_elmo.bilm.warm_state import compute_warm_state
from spacy_elmo.cli import app
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.weights.find import find_weights, load_bilm

from ..pipeline.helpers import CARD, CONFIG, write_weights
from ..weights.helpers import read

WORDS = [*SPECIALS, "the", "bank", "Größe", "\u2028"]
SENTENCES = [["The", "bank", "."], ["안녕하세요", "x" * 60], []]

pytest.importorskip("h5py")


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})


def convert(*arguments: Any) -> str:
    result = run("convert", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def refuses(*arguments: Any, said: str) -> None:
    result = run("convert", *arguments)
    assert result.exit_code == 1
    assert said in joined(result.output)


def joined(output: str) -> str:
    """Without the line breaks that fit it to a terminal."""
    return " ".join(output.split())


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A biLM with a head."""
    path = write_weights(tmp_path / "own")
    torch.manual_seed(0)
    save_head(SoftmaxHead(len(WORDS), CONFIG.projection_dim), Vocabulary(WORDS), path)
    return path


@pytest.fixture
def published(own: Path, tmp_path: Path) -> Path:
    """The same as if it came from elsewhere: it says nothing of its state."""
    convert(own, tmp_path / "published", "--to", "published")
    path = tmp_path / "published" / "options.json"
    options = json.loads(path.read_text(encoding="utf-8"))
    del options["spacy_elmo"]
    path.write_text(json.dumps(options), encoding="utf-8")
    for name in ("meta.json", "README.md", "LICENSE"):
        path.with_name(name).unlink()
    return path.parent


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Enough for a warm state."""
    path = tmp_path / "text.txt"
    path.write_text("One sentence. Another one! " * 5, encoding="utf-8")
    return path


def same_parameters(one: Path, other: Path) -> bool:
    a, b = (dict(load_bilm(path).named_parameters()) for path in (one, other))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def same_heads(one: Path, other: Path) -> bool:
    (a, words_a), (b, words_b) = load_head(one), load_head(other)
    return (
        words_a.words == words_b.words
        and torch.equal(a.weight, b.weight)
        and torch.equal(a.bias, b.bias)
    )


def files(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir())


def test_there_and_back(own: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    output = convert(own, there, "--to", "published")
    assert "in the published layout" in output
    assert files(there) == [
        "LICENSE", "README.md", "meta.json", "model.hdf5", "options.json", "vocab.txt"
    ]  # fmt: skip
    assert "in the native layout" in convert(there, back)
    assert same_parameters(own, back) and same_heads(own, back)
    assert find_weights(back).config() == CONFIG
    assert find_weights(back).card() == CARD
    assert find_weights(back).load().warm_h is None


def test_published_weights_get_a_warm_state(published: Path, tmp_path: Path) -> None:
    convert(published, tmp_path / "own2", "--lang", "en")
    weights = find_weights(tmp_path / "own2")
    assert weights.config() == replace(CONFIG, initial_state="warm")
    assert weights.load().warm_h is not None
    assert weights.card().meta == {"lang": "en"}
    one, _ = read(published).read(SENTENCES)
    other, _ = weights.load().read(SENTENCES)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_warm_state_of_another_language(published: Path, tmp_path: Path) -> None:
    output = convert(published, tmp_path / "english", "--lang", "de")
    assert "was computed from English" in output and "'de'" in output
    text = tmp_path / "text.txt"
    sentences = [["Das", "ist", "x" * i, "."] for i in range(2, 22)]
    text.write_text("\n".join(f"{a} {b} {c}." for a, b, c, _ in sentences), encoding="utf-8")
    output = convert(published, tmp_path / "german", "--warm-text", text, "--lang", "de")
    assert "English" not in output
    found = load_bilm(tmp_path / "german").warm_state()
    expected = compute_warm_state(read(published), sentences)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))
    english = load_bilm(tmp_path / "english").warm_state()
    assert not torch.allclose(found[1], english[1], atol=1e-3)


def test_the_language_may_stand_in_the_card(own: Path, published: Path, tmp_path: Path) -> None:
    assert "was computed from English" in joined(convert(published, tmp_path / "unknown"))
    assert "English" not in convert(published, tmp_path / "english", "--lang", "en-GB")
    options = json.loads((published / "options.json").read_text(encoding="utf-8"))
    options["spacy_elmo"] = {"initial_state": "warm"}
    (published / "options.json").write_text(json.dumps(options), encoding="utf-8")
    (published / "meta.json").write_text('{"lang": "de"}', encoding="utf-8")
    assert "sentences in the language 'de'" in joined(convert(published, tmp_path / "german"))
    output = convert(published, tmp_path / "other", "--lang", "nb")
    assert "sentences in the language 'nb'" in joined(output)
    assert find_weights(tmp_path / "other").card().meta == {"lang": "nb"}


def test_a_language_that_spacy_lacks(published: Path, text: Path, tmp_path: Path) -> None:
    output = convert(published, tmp_path / "out", "--warm-text", text, "--lang", "xqa")
    assert "spaCy does not support the language 'xqa'" in output and "'xx'" in output
    assert find_weights(tmp_path / "out").card().meta == {"lang": "xqa"}
    output = convert(published, tmp_path / "norwegian", "--warm-text", text, "--lang", "nb")
    assert "spaCy does not support" not in output


def test_a_text_that_is_too_short(published: Path, text: Path, tmp_path: Path) -> None:
    text.write_text("One sentence. Another one!", encoding="utf-8")
    said = "has 2 sentences; a warm state needs at least 8"
    refuses(published, tmp_path / "few", "--warm-text", text, said=said)


def test_trained_from_zeros_they_get_no_warm_state(own: Path, text: Path, tmp_path: Path) -> None:
    said = "trained from a zero state (initial_state is 'zero')"
    refuses(own, tmp_path / "warm", "--to", "native", "--warm-text", text, said=said)
    convert(own, tmp_path / "published", "--to", "published")
    refuses(tmp_path / "published", tmp_path / "warm", "--warm-text", text, said=said)
    assert not (tmp_path / "warm").exists()


def test_a_stored_warm_state_is_not_lost_in_silence(
    own: Path, published: Path, tmp_path: Path
) -> None:
    convert(published, tmp_path / "warm")
    back = convert(tmp_path / "warm", tmp_path / "back", "--to", "published")
    assert "warm state is left out" in joined(back)
    assert "warm state" not in convert(own, tmp_path / "zero", "--to", "published")


def test_lists_of_sources_stay_with_the_weights(own: Path, published: Path, tmp_path: Path) -> None:
    (own / "pages.txt").write_text("One page.\n", encoding="utf-8")
    (own / "__init__.py").touch()
    convert(own, tmp_path / "there", "--to", "published")
    (tmp_path / "there" / "weights.h5").touch()  # another model's
    with zipfile.ZipFile(tmp_path / "1.zip", "w") as archive:
        for file in (tmp_path / "there").iterdir():
            archive.write(file, file.name)
    for source in (own, tmp_path / "there", tmp_path / "1.zip"):
        out = tmp_path / f"from {source.stem}"
        convert(source, out, "--to", "native")
        assert files(out) == sorted({*files(own)} - {"__init__.py"})
        assert (out / "pages.txt").read_text(encoding="utf-8") == "One page.\n"
    # Beside a download may lie anything.
    (published / "thesis.txt").touch()
    convert(published, tmp_path / "theirs")
    assert "thesis.txt" not in files(tmp_path / "theirs")


def test_a_name_and_a_directory_of_that_name(own: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    own.rename(tmp_path / "en_sm")
    convert("./en_sm", "out")
    assert find_weights("out").config() == CONFIG


def test_words_of_the_softmax(own: Path, published: Path, tmp_path: Path) -> None:
    (published / "vocab.txt").rename(tmp_path / "words.txt")
    assert "is left out, because its vocabulary is unknown" in joined(
        convert(published, tmp_path / "without")
    )
    convert(published, tmp_path / "with", "--vocab", tmp_path / "words.txt")
    assert same_heads(tmp_path / "with", own)
    assert "left out" not in convert(published, tmp_path / "no-head", "--no-head")
    assert not find_weights(tmp_path / "no-head").has_head()
    few = tmp_path / "few.txt"
    few.write_text("<S>\n</S>\n<UNK>\n", encoding="utf-8")
    refuses(published, tmp_path / "few", "--vocab", few, said=f"'{few}' has 3 words")


def test_words_for_nothing(own: Path, published: Path, tmp_path: Path) -> None:
    words, new = tmp_path / "words.txt", tmp_path / "new"
    (published / "vocab.txt").rename(words)
    said = "There is no published head for --vocab"
    refuses(published, new, "--vocab", words, "--no-head", said=said)
    refuses(own, new, "--vocab", words, said=said)
    convert(own, tmp_path / "headless", "--no-head")
    refuses(tmp_path / "headless", new, "--vocab", words, said=said)
    result = run("convert", published, new, "--vocab", tmp_path / "nowhere.txt")
    assert result.exit_code == 2 and "does not exist" in result.output
    assert not new.exists()


def test_half_precision(own: Path, tmp_path: Path) -> None:
    convert(own, tmp_path / "half", "--to", "native", "--half")
    for name in ("weights.safetensors", "head.safetensors"):
        assert (tmp_path / "half" / name).stat().st_size < 0.8 * (own / name).stat().st_size
    half, whole = load_bilm(tmp_path / "half").state_dict(), load_bilm(own).state_dict()
    assert all(torch.equal(half[name], whole[name].half().float()) for name in whole)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["own", "own"], "already exists. Use --force"),
        (["own", "new", "--to", "tf"], "--to is 'tf'; known are"),
        (
            ["own", "new", "--half", "--to", "published"],
            "has no --half and no --warm-text: drop them",
        ),
        (["own", "new", "--to", "published", "--warm-text", "text.txt"], "no --warm-text"),
        (["own", "new.zip"], "is not a directory"),
        (["own", "text.txt"], "is not a directory"),
        (["nowhere", "new"], "Cannot find the ELMo weights 'nowhere'"),
        (["own", "text.txt/new"], "is not a directory"),
        (["own", "own", "own", "new"], "are no options.json and HDF5 file"),
        (["broken", "new"], "missing tensors"),
    ],
)
def test_refusals_leave_nothing(
    arguments: Sequence[str], said: str, own: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("Some text.")
    write_weights(Path("broken"))
    save_head(SoftmaxHead(2, 3), Vocabulary(WORDS), Path("broken"))
    (Path("broken") / "head.safetensors").rename(Path("broken") / "weights.safetensors")
    before = sorted(tmp_path.rglob("*"))
    refuses(*arguments, said=said)
    assert sorted(tmp_path.rglob("*")) == before


def test_without_a_directory(own: Path) -> None:
    result = run("convert", own)
    assert result.exit_code == 2 and "Missing argument 'IN...'" in result.output


def test_force(own: Path, tmp_path: Path) -> None:
    convert(own, tmp_path / "out", "--to", "published")
    convert("en_sm", tmp_path / "out", "--force")
    assert find_weights(tmp_path / "out").config() == find_weights("en_sm").config()
    convert("en_sm", tmp_path / "out", "--force")  # with all that lies beside it
    convert(own, tmp_path / "link" / "out")
    (tmp_path / "another").symlink_to(tmp_path / "link" / "out")
    convert(own, tmp_path / "another", "--to", "native", "--force")
    assert (tmp_path / "another").is_symlink()
    assert find_weights(tmp_path / "link" / "out").config() == CONFIG
    (tmp_path / "empty").mkdir()
    convert(own, tmp_path / "empty", "--force")


@pytest.mark.parametrize(
    "names",
    [
        ["thesis.txt"],
        ["config.json", "thesis.txt"],
        ["config.json", "weights.safetensors", "thesis.txt"],
        ["config.json", "weights.safetensors", "more/notes.txt"],
        ["README.md", "LICENSE"],
        ["weights.hdf5", "options.json"],
        ["4.txt", "3.txt", "2.txt", "1.txt"],
    ],
)
def test_nothing_else_is_replaced(names: Sequence[str], own: Path, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).touch()
    before = sorted(tmp_path.rglob("*"))
    said = "1.txt, 2.txt, 3.txt …" if len(names) == 4 else names[-1].split("/")[0]
    reason = "is not replaced, because this command did not write all of it"
    refuses(own, tmp_path / "out", "--force", said=reason)
    refuses(own, tmp_path / "out", "--force", said=said)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_users_texts_are_not_replaced(own: Path, tmp_path: Path) -> None:
    """Although files of the same names lie beside the source."""
    (tmp_path / "out").mkdir()
    for path in (own, tmp_path / "out"):
        (path / "notes.txt").write_text(path.name)
    refuses(own, tmp_path / "out", "--force", said="not write all of it: notes.txt")
    assert (tmp_path / "out" / "notes.txt").read_text() == "out"


@pytest.mark.parametrize("out", [".", "..", "../here", "/"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_the_working_directory_stays(
    out: str, force: Sequence[str], own: Path, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    refuses(own, out, *force, said="is the working directory or a parent of it")


def test_without_h5py(own: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    out = tmp_path / "out"
    refuses(own, out, "--to", "published", said="pip install 'spacy-elmo[hdf5]'")
    assert not (tmp_path / "out").exists()


# info


def info(*arguments: Any) -> dict[str, Any]:
    result = run("info", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_info(own: Path, published: Path, tmp_path: Path) -> None:
    found = info(own)
    n_parameters = sum(p.numel() for p in load_bilm(own).parameters())
    assert found["weights"]["bytes"] == sum(file.stat().st_size for file in own.iterdir())
    assert found["parameters"]["together"] == n_parameters
    assert found["vectors"] == {"width": 16, "layers": 3, "initial_state": "zero"}
    assert found["architecture"]["filters"] == [[1, 4], [2, 4], [3, 8]]
    assert found["language model"] == {"words": len(WORDS)}
    assert found["card"]["license"] == "CC BY-SA 3.0"
    assert found["card"]["documents"] == ["LICENSE", "README.md"]

    convert(published, tmp_path / "warm")
    assert info(tmp_path / "warm")["vectors"]["initial_state"] == "warm, stored"


def info_fails(path: Path, said: str) -> None:
    result = run("info", path)
    assert result.exit_code == 1
    assert said in joined(result.output)


def test_info_looks_into_the_files(own: Path) -> None:
    before = (own / "config.json").read_text(encoding="utf-8")
    data = json.loads(before)
    data["dim"] += 1
    (own / "config.json").write_text(json.dumps(data), encoding="utf-8")
    info_fails(own, "has the shape")
    (own / "config.json").write_text(before, encoding="utf-8")
    info(own)
    file = own / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    info_fails(own, file.name)


def test_info_of_another_format(published: Path) -> None:
    info_fails(published, f"python -m spacy elmo convert {published} {published}-converted")


def test_info_as_a_page() -> None:
    result = run("info", "en_sm")
    assert result.exit_code == 0
    page = " ".join(result.output.split())
    for line in ("together 4,182,224", "projection dim 128", "cell clip none", "words 20,000",
                 "filters 1×32, 2×32, 3×64, 4×128, 5×128, 6×128", "lang en"):  # fmt: skip
        assert line in page


def test_info_of_nothing() -> None:
    result = run("info", "en_xl")
    assert result.exit_code == 1
    assert "Cannot find the ELMo weights 'en_xl'" in result.output


def test_statistics_by_the_tokenizer_of_the_card(own: Path, tmp_path: Path) -> None:
    card = {"lang": "ko", "tokenizer": "spacy.Tokenizer.v1"}
    (own / "meta.json").write_text(json.dumps(card), encoding="utf-8")
    text = tmp_path / "korean.txt"
    text.write_text("나는 배를 탔다. 너는 배를 먹었다.\n", encoding="utf-8")
    convert(own, tmp_path / "new", "--to", "native", "--statistics", text)
    words = find_weights(tmp_path / "new").statistics().words
    assert "배를" in words
    lines = tmp_path / "korean.jsonl"
    lines.write_text('{"text": "나는 배를 탔다. 너는 배를 먹었다."}\n', encoding="utf-8")
    convert(own, tmp_path / "json", "--to", "native", "--statistics", lines)
    assert find_weights(tmp_path / "json").statistics().words == words


def test_statistics_of_a_text(own: Path, text: Path, tmp_path: Path) -> None:
    said = joined(convert(own, tmp_path / "new", "--to", "native", "--statistics", text))
    assert "similarities will be rough" in said  # it has a few sentences
    weights = find_weights(tmp_path / "new")
    assert weights.statistics() is not None and find_weights(own).statistics() is None
    convert(tmp_path / "new", tmp_path / "copy", "--to", "native")
    assert find_weights(tmp_path / "copy").statistics().words == weights.statistics().words


def test_statistics_of_another_warm_state_are_left_out(
    published: Path, text: Path, tmp_path: Path
) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    convert(published, one, "--statistics", text)
    arguments = ["--to", "native", "--warm-text", text]
    said = "The statistics for similarity are left out"
    assert said in joined(convert(one, two, *arguments))
    assert find_weights(two).statistics() is None
    assert said not in joined(convert(one, three, *arguments, "--statistics", text))
    assert find_weights(three).statistics() is not None
    convert(one, there := tmp_path / "there", "--to", "published")
    assert said in joined(convert(there, tmp_path / "back"))
    assert find_weights(tmp_path / "back").statistics() is None


def test_statistics_stay_beside_weights_in_the_published_layout(own, text, tmp_path) -> None:
    """There and back, in a zip too; pipelines compare words by them."""
    mine, there, archive = tmp_path / "mine", tmp_path / "there", tmp_path / "there.zip"
    convert(own, mine, "--statistics", text)
    convert(mine, there, "--to", "published")
    with zipfile.ZipFile(archive, "w") as opened:
        for file in there.iterdir():
            opened.write(file, file.name)
    convert(there, tmp_path / "back")
    convert(archive, tmp_path / "unzipped")
    similarities = []
    for weights in (mine, tmp_path / "back", tmp_path / "unzipped", own):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": {"weights": str(weights)}})
        doc = nlp("One sentence and another sentence")
        similarities.append(doc[1].similarity(doc[4]))
    assert similarities[:3] == pytest.approx([similarities[0]] * 3, abs=1e-3)
    assert abs(similarities[3] - similarities[0]) > 0.01
    (there / "statistics.safetensors").write_bytes(b"damaged")
    refuses(there, tmp_path / "damaged", said="Cannot read the statistics")
