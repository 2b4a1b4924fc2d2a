"""The pages that are followed by copy and paste: the quick start, recipes and others."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

import spacy_elmo.pipeline.surprisal  # noqa: F401  # also where another version is installed
from spacy_elmo.weights.find import find_weights

from ..cli.helpers import succeed
from ..pretraining.helpers import PROSE
from ..project.sentences import annotated_docs
from .pages import DOCS, MARKS, ROOT, assert_close, blocks, run_blocks, run_page

# The test that runs the blocks of each page. The other pages have none that could be run.
RUN_BY = {
    "README.md": __name__,  # and tests/project/test_end_to_end.py
    "README.ko.md": __name__,
    "docs/first-pipeline.md": __name__,
    "docs/how-elmo-works.md": __name__,
    "docs/languages.md": "tests/project/test_project.py",
    "docs/language-model.md": "tests/docs/test_snippets.py",
    "docs/migration.md": "tests/docs/test_snippets.py",
    "docs/pretraining.md": "tests/docs/test_snippets.py",
    "docs/quickstart.md": __name__,
    "docs/recipes.md": __name__,
    "docs/scale.md": "tests/encoding/test_scale.py",
    "docs/settings.md": "tests/docs/test_snippets.py",
    "docs/similarity.md": __name__,
    "docs/training.md": "tests/docs/test_snippets.py",
    "docs/weights.md": __name__,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_page_with_blocks_is_run() -> None:
    for page in [*ROOT.glob("*.md"), *DOCS.glob("*.md")]:
        found = blocks(page.read_text(encoding="utf-8"))
        assert {mark for mark, _, _ in found} <= {"", *MARKS}, page
        runnable = [language for mark, language, _ in found if not mark and language != "text"]
        name = page.relative_to(ROOT).as_posix()
        assert bool(runnable) == (name in RUN_BY), name


def test_readme() -> None:
    names = {"nlp": spacy.blank("en")}
    for mark, language, content in blocks((ROOT / "README.md").read_text(encoding="utf-8")):
        if language == "python" and not mark:
            exec(content, names)
    assert names["doc"].tensor.shape == (15, 256)
    similarity = names["river"].similarity(names["money"])
    assert round(similarity, 2) == 0.57  # as the README says
    assert names["nlp"]("He fished from the bank.")[4].similarity(names["river"]) > similarity


@pytest.mark.slow
def test_quickstart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = "--training.max_steps 60 --training.eval_frequency 20"
    names = run_page("quickstart.md", monkeypatch, steps)
    assert names["river"].similarity(names["other"]) > names["river"].similarity(names["money"])
    tags = [token.tag_ for token in names["tagger"]("They play the play.")]
    assert tags == ["PRON", "VERB", "DET", "NOUN", "PUNCT"]
    assert "bank" in Path("senses.svg").read_text(encoding="utf-8")
    for run, accuracy in [("plain", 0.65), ("trained", 0.96)]:  # as the page says
        found = spacy.load(Path(run, "model-best")).meta["performance"]["tag_acc"]
        assert found == pytest.approx(accuracy, abs=0.05)
    meta = Path("en_tagger-1.0.0", "meta.json").read_text(encoding="utf-8")
    assert any(line.startswith("spacy-elmo>=") for line in json.loads(meta)["requirements"])


@pytest.mark.parametrize("name", ["models", "pipeline"])
def test_pictures_are_up_to_date(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If not: python docs/images/draw.py"""
    monkeypatch.syspath_prepend(DOCS / "images")
    draw = importlib.import_module("draw")
    stored = (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8")
    assert stored == getattr(draw, f"draw_{name}")().svg(draw.TITLES[name]) + "\n"


def test_the_picture_of_senses_is_what_its_command_draws(folder: Path) -> None:
    """That of the quick start, up to rounding."""
    pytest.importorskip("matplotlib")
    found = blocks((DOCS / "quickstart.md").read_text(encoding="utf-8"))
    [code] = [text for _, _, text in found if "SENTENCES" in text]
    exec(code, {})
    [command] = [text for _, _, text in found if "elmo senses" in text]
    succeed(*shlex.split(command.strip().split(" elmo ")[1]))
    stored = (DOCS / "images" / "senses.svg").read_text(encoding="utf-8")
    assert_close(Path("senses.svg").read_text(encoding="utf-8"), stored)


def test_sizes_of_pictures_are_plain() -> None:
    """Without units or a style, which renderers other than browsers do not know."""
    for file in [*DOCS.glob("images/*.svg"), *ROOT.glob("project/pictures/*.svg")]:
        root = ET.parse(file).getroot().attrib
        width, height = (float(root[name]) for name in ("width", "height"))
        _, _, *box = map(float, root["viewBox"].split())
        assert "style" not in root and width / height == pytest.approx(box[0] / box[1], rel=0.01)


def test_how_elmo_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_page("how-elmo-works.md", monkeypatch)["layers"].shape == (3, 15, 256)


def test_similarity(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("h5py")
    golden = ROOT / "tests" / "fixtures" / "golden_tiny"
    for name in ("options.json", "weights.hdf5"):
        Path(name).write_bytes((golden / name).read_bytes())
    Path("text.txt").write_text(PROSE, encoding="utf-8")
    names = run_page("similarity.md", monkeypatch)
    assert names["search"]("Interest rates of the bank went up.")[0] == names["sentences"][0]
    assert Path("my_weights", "statistics.safetensors").exists()


def test_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("weights.md", monkeypatch)
    meta = json.loads(Path("en_bilm-0.0.0", "meta.json").read_text(encoding="utf-8"))
    assert meta["license"] == "CC BY-SA 4.0" and meta["sources"]


@pytest.fixture
def own_files(folder: Path) -> None:
    """What the recipes take for granted: texts and annotations of the reader."""
    docs = list(annotated_docs(spacy.blank("en").vocab))
    DocBin(docs=docs).to_disk("train.spacy")
    DocBin(docs=docs[:10]).to_disk("dev.spacy")
    teacher = spacy.blank("en")
    patterns = [
        {"label": "ANIMAL", "pattern": [{"LOWER": word}]} for word in ("dog", "dogs", "the")
    ]
    teacher.add_pipe("entity_ruler").add_patterns(patterns)
    teacher.to_disk("teacher")
    for name in ("texts", "domain", "domain_heldout"):
        Path(f"{name}.txt").write_text(PROSE, encoding="utf-8")
    for name in ("korean", "korean_heldout"):
        lines = [f"나는 {i}번 배를 타고 집에 갔다. 배가 고팠다.\n" for i in range(20)]
        Path(f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    words = sorted({word for word in re.findall(r"\w+", PROSE)})
    rows = [f"{word} {len(word)} {len(word) % 3}" for word in words]
    Path("glove.txt").write_text("\n".join([f"{len(rows)} 2", *rows]), encoding="utf-8")


@pytest.mark.slow
def test_recipes(folder: Path, own_files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    run_page("recipes.md", monkeypatch)
    for trained in ("few", "own_domain", "static", "tuned", "student"):
        assert spacy.load(Path(trained, "model-best")).pipe_names == ["elmo", "tok2vec", "ner"]


@pytest.mark.slow
def test_korean_readme(folder: Path, own_files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "README.ko.md"
    text = page.read_text(encoding="utf-8")
    (folder / "project").symlink_to(ROOT / "project")
    names = run_blocks(blocks(text), monkeypatch)
    found = re.findall(r"(\w+)\.similarity\((\w+)\)  # (\d\.\d\d)", text)
    assert len(found) == 2
    for left, right, value in found:
        assert f"{names[left].similarity(names[right]):.2f}" == value
    assert find_weights(folder / "korean_model" / "model-best").card().meta["lang"] == "ko"


TEXTS_AND_LABELS = """text,label
The parcel never arrived.,delivery
I was charged twice.,payment
"Hello, where is my order?",delivery
My card was declined.,payment
The courier left it in the rain.,delivery
"""


@pytest.mark.slow
def test_first_pipeline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a CSV file to a classifier that is served."""
    pytest.importorskip("fastapi")
    client = pytest.importorskip("fastapi.testclient").TestClient
    Path("texts.csv").write_text(TEXTS_AND_LABELS, encoding="utf-8")
    names = run_page("first-pipeline.md", monkeypatch)
    assert set(names["doc"].cats) == {"delivery", "payment"}
    assert spacy.load("trained/model-best").pipe_names == ["elmo", "textcat"]
    assert Path("comparison").is_dir()
    # Its web service, asked by several users at a time.
    spec = importlib.util.spec_from_file_location("service", "service.py")
    service = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(service)
    texts = ["Where is my parcel?", "Hello there."]
    n_words = len(service.nlp.vocab.strings)

    def ask(number: int) -> list[dict[str, float]]:
        asked = [*texts, f"new{number} words{number}"]
        return web.post("/labels", json={"texts": asked}).json()[:2]

    with client(service.app) as web, ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(ask, range(16)))
    assert len(service.nlp.vocab.strings) == n_words
    expected = [doc.cats for doc in service.nlp.pipe(texts)]
    for cats in answers:
        assert cats == [pytest.approx(each, abs=1e-5) for each in expected]
