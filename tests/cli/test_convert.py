"""``python -m spacy elmo convert`` and ``info``."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spacy_elmo.bilm.kernel.library import load_kernel
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.weights.find import find_weights, load_bilm

from ..bilm.helpers import same_weights
from ..pipeline.helpers import CARD, CONFIG, make_nlp, write_weights
from ..weights.helpers import read
from .helpers import fail, joined, succeed

WORDS = [*SPECIALS, "the", "bank", "Größe", "\u2028", "#", "\ufeff"]
SENTENCES = [["The", "bank", "."], ["안녕하세요", "x" * 60], []]

pytest.importorskip("h5py")


def convert(*arguments: Any) -> str:
    return joined(succeed("convert", *arguments))


def refuses(*arguments: Any, said: str) -> None:
    assert said in fail("convert", *arguments)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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


def same_heads(one: Path, other: Path) -> bool:
    (a, words_a), (b, words_b) = load_head(one), load_head(other)
    are_same = torch.equal(a.weight, b.weight) and torch.equal(a.bias, b.bias)
    return are_same and words_a.words == words_b.words


def test_there_and_back(own, tmp_path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    assert "in the published format" in convert(own, there, "--to", "published")
    names = "LICENSE README.md meta.json model.hdf5 options.json vocab.txt"
    assert sorted(file.name for file in there.iterdir()) == names.split()
    assert "in the native format" in convert(there, back)
    found = find_weights(back)
    assert same_weights(load_bilm(own), found.load()) and same_heads(own, back)
    assert (found.config(), found.card(), found.load().warm_h) == (CONFIG, CARD, None)


def test_published_weights_get_a_warm_state(published, tmp_path) -> None:
    convert(published, tmp_path / "own2", "--lang", "en")
    weights = find_weights(tmp_path / "own2")
    assert weights.config() == replace(CONFIG, initial_state="warm")
    assert weights.load().warm_h is not None
    assert weights.card().meta == {"lang": "en"}
    one, _ = read(published).read(SENTENCES)
    other, _ = weights.load().read(SENTENCES)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_warm_state_of_another_language(published, tmp_path) -> None:
    said = "computed from English"
    assert f"{said} text, and the language is 'unknown'" in convert(published, "unknown")
    assert said not in convert(published, "english", "--lang", "en-GB")
    assert f"{said} text, and the language is 'de'" in convert(published, "de", "--lang", "de")
    text = tmp_path / "text.txt"
    sentences = [["Das", "ist", "x" * i, "."] for i in range(2, 22)]
    text.write_text("\n".join(f"{a} {b} {c}." for a, b, c, _ in sentences), encoding="utf-8")
    assert said not in convert(published, "german", "--warm-text", text, "--lang", "de")
    assert find_weights("german").card().meta == {"lang": "de"}
    found, english = (load_bilm(name).initial_state("warm") for name in ("german", "english"))
    expected = read(published).compute_warm_state(sentences)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))
    assert not torch.allclose(found[1], english[1], atol=1e-3)


def test_warm_texts_that_do_not_do(own, published, text, tmp_path) -> None:
    """One that is too short, or for a biLM that starts from zeros."""
    said = "trained from a zero state (initial_state is 'zero')"
    refuses(own, "warm", "--warm-text", text, said=said)
    convert(own, "there", "--to", "published")
    refuses("there", "warm", "--warm-text", text, said=said)
    text.write_text("One sentence. Another one!", encoding="utf-8")
    said = "has 2 sentences; a warm state needs at least 8"
    refuses(published, "warm", "--warm-text", text, said=said)
    assert not Path("warm").exists()


def test_a_stored_warm_state_is_not_lost_in_silence(own, published, tmp_path) -> None:
    convert(published, tmp_path / "warm")
    back = convert(tmp_path / "warm", tmp_path / "back", "--to", "published")
    assert "warm state is left out" in back
    assert "warm state" not in convert(own, tmp_path / "zero", "--to", "published")


def test_words_of_the_softmax(own, published, tmp_path) -> None:
    words = (published / "vocab.txt").rename(tmp_path / "words.txt")
    said = "is left out, because its vocabulary is unknown"
    assert said in convert(published, "without")
    convert(published, "with", "--vocab", words)
    assert same_heads(tmp_path / "with", own)
    assert "left out" not in convert(published, "no-head", "--no-head")
    assert not find_weights("no-head").has_head()
    for source, *arguments in ([published, "--no-head"], [own], ["no-head"]):
        said = "There is no published head for --vocab"
        refuses(source, "new", "--vocab", words, *arguments, said=said)
    words.write_text("<S>\n</S>\n<UNK>\n", encoding="utf-8")
    refuses(published, "few", "--vocab", words, said=f"'{words}', which has 3 words")
    assert not Path("new").exists() and not Path("few").exists()


def test_int8(own, published, tmp_path) -> None:
    """Also with --half, and there and back; the warm state is that of the rounded weights."""
    convert(published, tmp_path / "int8", "--int8")
    convert(published, tmp_path / "float")
    rounded, exact = load_bilm(str(tmp_path / "int8")), load_bilm(str(tmp_path / "float"))
    assert rounded.config.int8 and not exact.config.int8
    assert not torch.equal(rounded.warm_h, exact.warm_h)
    assert torch.equal(rounded.warm_h, rounded.compute_warm_state()[0])
    convert(tmp_path / "float", tmp_path / "again", "--int8")
    assert torch.equal(load_bilm(tmp_path / "again").warm_h, rounded.warm_h)
    sizes = [(tmp_path / name / "weights.safetensors").stat().st_size for name in ("int8", "float")]
    assert sizes[0] < sizes[1]
    convert(tmp_path / "int8", tmp_path / "there", "--to", "published")
    convert(tmp_path / "there", tmp_path / "back", "--int8", "--half")
    back = load_bilm(str(tmp_path / "back"))
    for name in ("weight_ih", "weight_hh"):
        assert torch.equal(getattr(back.lstm[0], name), getattr(rounded.lstm[0], name))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["own", "own"], "already exists. Use --force"),
        (["own", "new", "--half", "--to", "published"], "has no --half and no --warm-text"),
        (["own", "new", "--to", "published", "--warm-text", "text.txt"], "no --warm-text"),
        (["own", "new.zip"], "is not a directory"),
        (["own", "text.txt/new"], "is not a directory"),
        (["own", "own", "own", "new"], "are no options.json and HDF5 file"),
        (["broken", "new"], "missing tensors"),
    ],
)
def test_refusals_leave_nothing(arguments, said, own, tmp_path) -> None:
    Path("text.txt").write_text("Some text.")
    write_weights(Path("broken"))
    save_head(SoftmaxHead(2, 3), Vocabulary(WORDS), Path("broken"))
    (Path("broken") / "head.safetensors").rename(Path("broken") / "weights.safetensors")
    before = sorted(tmp_path.rglob("*"))
    refuses(*arguments, said=said)
    assert sorted(tmp_path.rglob("*")) == before


def test_force(own, tmp_path) -> None:
    convert(own, tmp_path / "out", "--to", "published")
    for _ in range(2):  # the second time over all that lies beside it
        convert("en_sm", tmp_path / "out", "--force")
    assert find_weights(tmp_path / "out").config() == find_weights("en_sm").config()
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
        ["config.json", "weights.safetensors", "more/notes.txt"],
        ["README.md", "LICENSE"],
    ],
)
def test_nothing_else_is_replaced(names, own, tmp_path) -> None:
    """Not even a text of the name of one that lies beside the source."""
    (own / "notes.txt").touch()
    for name in names:
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).touch()
    before, unknown = sorted(tmp_path.rglob("*")), names[-1].split("/")[0]
    said = fail("convert", own, "out", "--force")
    assert "is not replaced, because this command did not write all of it" in said
    assert unknown in said
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("out", [".", ".."])
def test_the_working_directory_stays(out, own, tmp_path, monkeypatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    refuses(own, out, "--force", said="is the working directory or a parent of it")


# info


def info(weights: Path) -> dict[str, Any]:
    return json.loads(succeed("info", weights, "--json"))


def test_info(own, published, tmp_path) -> None:
    found = info(own)
    n_parameters = sum(p.numel() for p in load_bilm(own).parameters())
    assert found["weights"]["bytes"] == sum(file.stat().st_size for file in own.iterdir())
    assert found["parameters"]["total"] == n_parameters
    kernel = load_kernel()
    assert found["vectors"] == {
        "width": 16, "layers": 3, "initial_state": "zero", "kernel": kernel and kernel.name
    }  # fmt: skip
    assert found["architecture"]["filters"] == [[1, 4], [2, 4], [3, 8]]
    assert found["language model"] == {"words": len(WORDS)}
    assert found["card"]["license"] == "CC BY-SA 3.0"
    assert found["card"]["documents"] == ["LICENSE", "README.md"]
    convert(published, tmp_path / "warm")
    assert info(tmp_path / "warm")["vectors"]["initial_state"] == "warm, stored"


def test_info_of_other_things(own, published) -> None:
    """It looks into the files."""
    command = f"python -m spacy elmo convert {published} {published}-converted"
    assert command in fail("info", published)
    config, file = own / "config.json", own / "weights.safetensors"
    before = config.read_text(encoding="utf-8")
    config.write_text(json.dumps({**json.loads(before), "dim": 99}), encoding="utf-8")
    assert "has the shape" in fail("info", own)
    config.write_text(before, encoding="utf-8")
    file.write_bytes(file.read_bytes()[:1000])
    assert file.name in fail("info", own)


def test_info_as_a_page_of_the_default_weights() -> None:
    page = joined(succeed("info"))
    for line in ("total 4,182,224", "projection dim 128", "cell clip none", "words 20,000",
                 "filters 1×32, 2×32, 3×64, 4×128, 5×128, 6×128", "lang en"):  # fmt: skip
        assert line in page


def test_statistics_by_the_tokenizer_of_the_card(own, tmp_path) -> None:
    card = {"lang": "ko", "tokenizer": "spacy.Tokenizer.v1"}
    (own / "meta.json").write_text(json.dumps(card), encoding="utf-8")
    lines = tmp_path / "korean.jsonl"
    lines.write_text('{"text": "나는 배를 탔다. 너는 배를 먹었다."}\n', encoding="utf-8")
    convert(own, "new", "--statistics", lines)
    assert "배를" in find_weights("new").statistics().frequencies


def test_statistics_of_a_text(own, text) -> None:
    said = convert(own, "new", "--statistics", text)
    assert "similarities will be rough" in said  # it has a few sentences
    statistics = find_weights("new").statistics()
    assert statistics is not None and find_weights(own).statistics() is None
    convert("new", "copy")
    assert find_weights("copy").statistics().frequencies == statistics.frequencies


def test_statistics_of_another_warm_state_are_left_out(published, text, tmp_path) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    convert(published, one, "--statistics", text)
    arguments = ["--to", "native", "--warm-text", text]
    said = "The statistics for similarity are left out"
    assert said in convert(one, two, *arguments)
    assert find_weights(two).statistics() is None
    assert said not in convert(one, three, *arguments, "--statistics", text)
    assert find_weights(three).statistics() is not None
    convert(one, there := tmp_path / "there", "--to", "published")
    assert said in convert(there, tmp_path / "back")
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
        doc = make_nlp(weights)("One sentence and another sentence")
        similarities.append(doc[1].similarity(doc[4]))
    assert similarities[:3] == pytest.approx([similarities[0]] * 3, abs=1e-3)
    assert abs(similarities[3] - similarities[0]) > 0.01
    (there / "statistics.safetensors").write_bytes(b"damaged")
    refuses(there, tmp_path / "damaged", said="Cannot read the statistics")
