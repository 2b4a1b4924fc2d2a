"""The snippets and commands of the documentation, run as they stand."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

import spacy_elmo
import spacy_elmo.pipeline.surprisal  # also where another version's entry points are installed
from spacy_elmo.pretraining.config import PretrainConfig, read_config

from ..cli.helpers import succeed
from ..pipeline.helpers import WIDTH, make_nlp, write_weights
from ..pretraining.helpers import PROSE, config_text
from .pages import blocks, run_blocks, run_command, run_page

ROOT = Path(__file__).parents[2]


def test_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "tests" / "fixtures" / "golden_tiny", "english")
    shutil.make_archive("german", "zip", "english")
    Path("german.txt").write_text("Ein Satz. Noch einer! " * 15, encoding="utf-8")
    names = run_page("migration.md", monkeypatch)
    assert names["doc"].tensor.shape == (len(names["doc"]), 16)
    nlp = make_nlp("converted", store=["layers"])
    [expression] = re.findall(
        r"`(np\.concatenate[^`]*)`", (ROOT / "docs/migration.md").read_text("utf-8")
    )
    assert eval(expression, names, {"token": nlp("A bank")[1]}).shape == (3 * 16,)
    assert Path("german/weights.safetensors").exists()
    assert Path("exported/model.hdf5").exists() and Path("out.hdf5").exists()


def test_language_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("heldout.txt").write_text("The bank closed. A river?\n", encoding="utf-8")
    names = run_page("language-model.md", monkeypatch)
    assert names["lm"].substitutes(names["words"], 2, 1)[0][0] == "drains"
    assert names["surprisal"].known.all()
    assert names["doc"][5]._.surprisal > 10


def test_settings() -> None:
    """The settings with their defaults, all of them."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    [content] = [c for _, _, c in blocks(page) if "store = []" in c]
    config = Config().from_str(f"[components]\n\n{content}")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    assert config["components"]["elmo"] == nlp.config["components"]["elmo"]


def test_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each config block makes a pipeline that learns; the settings are those that there are."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    found = blocks(page)
    assert {language for _, language, _ in found} == {"python", "ini", "bash"}
    weights = write_weights(tmp_path / "tiny")
    nlp = spacy.blank("en")
    tagged = Doc(nlp.vocab, words=["A", "bank", "sat", "."], tags=["D", "N", "V", "P"])
    for split in ("train", "dev"):
        DocBin(docs=[tagged] * 5).to_disk(f"{split}.spacy")
    for _, language, content in found:
        if language == "bash":
            for command in content.splitlines():
                run_command(command, monkeypatch)
            continue
        if language == "python":
            exec(content, {"nlp": nlp})
            assert spacy_elmo.mixes(nlp)
            continue
        config = Config().from_str(f"[components]\n\n{content}")
        names = list(config["components"])
        model = config["components"]["elmo"].setdefault("model", {})
        config["components"]["elmo"]["model"] = {
            "@architectures": "spacy-elmo.Elmo.v1", **model, "weights": str(weights)
        }  # fmt: skip
        listener = config["components"].get("tagger", {}).get("model", {}).get("tok2vec", {})
        if "width" in listener:
            listener["width"] = WIDTH
        nlp = load_model_from_config(
            Config({"nlp": {"lang": "en", "pipeline": names}, **config}), auto_fill=True
        )
        examples = [
            Example.from_dict(
                nlp.make_doc("A bank sat."),
                {"tags": ["D", "N", "V", "P"], "entities": ["O", "U-X", "O", "O"]},
            )
        ]
        nlp.initialize(lambda examples=examples: examples)
        losses = nlp.update(examples)
        assert all(losses[name] > 0 for name in names if name not in ("elmo", "doc_cleaner"))
        nlp("A bank sat.")


def test_links_lead_somewhere() -> None:
    def anchors(page: Path) -> set[str]:
        headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}

    of_weights = ROOT / "spacy_elmo" / "models" / "en_sm" / "README.md"
    folders = [ROOT / name for name in ("docs", "benchmarks", "project", "project/configs")]
    pages = [path for folder in folders for path in folder.glob("*.md")]
    for page in [ROOT / "README.md", of_weights, *pages]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if target.startswith("http"):
                continue
            path, _, anchor = target.partition("#")
            linked = page.parent / path if path else page
            assert linked.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(linked), f"{page.name}: {target}"


def test_pretraining(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the page, with few steps; and its configs, each put under a small one."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(PROSE * 2, encoding="utf-8")
    Path("heldout.txt").write_text(PROSE, encoding="utf-8")
    Path("korean.txt").write_text("나는 집에 간다. 너는?\n", encoding="utf-8")
    Path("adapt.cfg").write_text("[training]\nmax_epochs = 1\n", encoding="utf-8")
    Path("more").mkdir()
    Path("more", "a.jsonl").write_text('{"text": "Nobody came."}\n', encoding="utf-8")
    found = blocks((ROOT / "docs" / "pretraining.md").read_text(encoding="utf-8"))
    assert {language for _, language, _ in found} == {"python", "bash", "ini", "console"}
    configs = [content for _, language, content in found if language == "ini"]
    nlp = run_blocks([each for each in found if each[1] in ("python", "bash")], monkeypatch)["nlp"]
    assert [token.text for token in nlp("나는 집에 간다.")] == ["나는", "집에", "간다", "."]
    for out in ("training", "adapted"):
        model = {"@architectures": "spacy-elmo.Elmo.v1", "weights": f"{out}/model-best"}
        elmo = spacy.blank("en").add_pipe("elmo", config={"model": model})
        assert elmo is not None
    # The other configs, beside the rest of one.
    base = config_text(read_config(Path("training", "pretrain.cfg")))
    for number, config in enumerate(configs):
        config = config.replace("more/*.jsonl.xz", "more/*.jsonl")
        path = Path(f"config-{number}.cfg")
        path.write_text(f"{base}\n{config}", encoding="utf-8")
        # Readers are in the place of paths.
        paths = " --paths.train null --paths.dev null" if "@readers" in config else ""
        run_command(f"python -m spacy elmo pretrain {path} run-{number}{paths}", monkeypatch)
    assert Path("korean/meta.json").exists()


def test_settings_of_pretraining() -> None:
    """The table of settings: all there are, with their defaults."""
    page = (ROOT / "docs" / "pretraining.md").read_text(encoding="utf-8")
    documented: dict[str, dict[str, Any]] = {}
    section = ""
    for row in re.findall(r"^\| (.*?`) \| `([^|]*)` \|", page, flags=re.MULTILINE):
        names = re.findall(r"`([^`]*)`", row[0])
        if names[0].startswith("["):
            section = names.pop(0)[1:-1]
        documented.setdefault(section, {}).update(dict.fromkeys(names, json.loads(row[1])))
    there_are = {
        field.name: asdict(field.default_factory())
        for field in fields(PretrainConfig)
        if is_dataclass(field.default_factory)
    }
    assert documented == there_are


def test_what_predict_prints() -> None:
    """The columns on the page are those that the command prints."""
    page = (ROOT / "docs" / "language-model.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^python -m spacy elmo (predict .* --top 3)$", page, flags=re.MULTILINE)
    shown = re.search(r"(?:^    .*\n|^\n)+", page[page.index(command) :], flags=re.MULTILINE)
    assert shown is not None
    assert shown.group().split() == succeed(*shlex.split(command)).split()
