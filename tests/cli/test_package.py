"""``python -m spacy elmo package``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.weights.find import EMBEDDED, load_bilm

from ..pipeline.helpers import CONFIG, write_weights

WORDS = [*SPECIALS, "the", "bank"]
needs_setuptools = pytest.mark.skipif(
    find_spec("setuptools") is None, reason="packages are built with setuptools"
)


def run(*arguments: Any) -> Result:
    arguments = ("package", *map(str, arguments))
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Weights with a head and a list of sources."""
    path = write_weights(tmp_path / "weights")
    save_head(SoftmaxHead(len(WORDS), CONFIG.projection_dim), Vocabulary(WORDS), path)
    (path / "pages.txt").write_text("One page.\n", encoding="utf-8")
    return path


def install(package: Path, tmp_path: Path) -> dict[str, str]:
    """Install a package beside nothing else; the environment in which it is found."""
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", site, package]
    subprocess.run(command, check=True)
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


USE = """
import sys, spacy
from spacy_elmo.weights.find import find_weights
nlp = spacy.blank("en")
nlp.add_pipe("elmo", config={"model": {"weights": sys.argv[1]}})
print(find_weights(sys.argv[1]).has_head(), *map(float, nlp("A bank of words.").tensor[1]))
"""


def use(setting: Any, environment: dict[str, str] | None = None) -> list[str]:
    """What another process reads with these weights."""
    command = [sys.executable, "-c", USE, str(setting)]
    result = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return result.stdout.split()


@needs_setuptools
@pytest.mark.parametrize(
    "kind",
    ["wheel", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("none", "sdist"))],
)
def test_installed_and_found_by_name(kind: str, weights: Path, tmp_path: Path) -> None:
    result = run(weights, tmp_path / "out", "--name", "my_lang", "--build", kind)
    assert result.exit_code == 0, result.output
    assert 'weights = "my_lang"' in result.output
    root = tmp_path / "out" / "spacy-elmo-my-lang-0.0.0"
    built = {"none": root, "wheel": "*.whl", "sdist": "*.tar.gz"}[kind]
    package = built if isinstance(built, Path) else next((root / "dist").glob(built))
    found = use("my_lang", install(package, tmp_path))
    assert found == use(weights)
    assert found[0] == "True"


def test_what_is_in_it(weights: Path, tmp_path: Path) -> None:
    assert run(weights, tmp_path, "-n", "x_y", "-v", "1.2.0", "-b", "none").exit_code == 0
    root = tmp_path / "spacy-elmo-x-y-1.2.0"
    assert sorted(file.name for file in root.iterdir()) == [
        "LICENSE", "README.md", "pyproject.toml", "spacy_elmo_x_y"
    ]  # fmt: skip
    inside = root / "spacy_elmo_x_y"
    names = {file.name for file in weights.iterdir()}
    assert {file.name for file in inside.iterdir()} == {*names, "__init__.py"}
    for name in names - {"meta.json"}:
        assert (inside / name).read_bytes() == (weights / name).read_bytes()
    before, after = (json.loads((path / "meta.json").read_text()) for path in (weights, inside))
    assert after == {**before, "name": "x_y", "version": "1.2.0"}


def test_name_and_version_come_from_the_card(weights: Path, tmp_path: Path) -> None:
    assert run(weights, tmp_path / "out", "--build", "none", "--no-head").exit_code == 0
    [inside] = (tmp_path / "out" / "spacy-elmo-tiny-0.0.0").glob("spacy_elmo_tiny")
    assert (inside / "pages.txt").exists()
    assert not (inside / "head.safetensors").exists() and not (inside / "vocab.txt").exists()


def test_its_page_names_the_tokenizer(weights: Path, tmp_path: Path) -> None:
    """spaCy's own for Korean needs another package, and splits words otherwise."""
    card = {"lang": "ko", "tokenizer": "spacy.Tokenizer.v1"}
    (weights / "meta.json").write_text(json.dumps(card), encoding="utf-8")
    assert run(weights, tmp_path, "-n", "my_ko", "-b", "none").exit_code == 0
    page = (tmp_path / "spacy-elmo-my-ko-0.0.0" / "README.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("nlp.add_pipe")[0], names)
    assert [token.text for token in names["nlp"]("배를 탔다.")] == ["배를", "탔다", "."]


@pytest.fixture
def published(weights: Path, tmp_path: Path) -> Path:
    """The same as if it came from elsewhere."""
    pytest.importorskip("h5py")
    converted = CliRunner().invoke(app, ["convert", str(weights), str(tmp_path / "published")])
    assert converted.exit_code == 0
    options = tmp_path / "published" / "options.json"
    data = json.loads(options.read_text())
    del data["spacy_elmo"]
    options.write_text(json.dumps(data))
    return options.parent


def test_published_weights(weights: Path, published: Path, tmp_path: Path) -> None:
    assert run(published, tmp_path, "-n", "old", "-b", "none").exit_code == 0
    inside = tmp_path / "spacy-elmo-old-0.0.0" / "spacy_elmo_old"
    model, expected = load_bilm(inside), load_bilm(weights)
    assert model.config.initial_state == "warm" and "warm_h" in model.state_dict()
    for name, parameter in expected.named_parameters():
        assert torch.equal(model.get_parameter(name), parameter)
    assert torch.equal(load_head(inside)[0].weight, load_head(weights)[0].weight)


def test_two_files(weights: Path, published: Path, tmp_path: Path) -> None:
    two = published / "options.json", published / "model.hdf5"
    out, arguments = tmp_path / "out", ["-n", "old", "-b", "none"]
    result = run(*two, out, *arguments)
    assert result.exit_code == 0
    assert "is left out, because its vocabulary is unknown" in " ".join(result.output.split())
    assert not list(out.rglob("head.safetensors"))
    vocab = ["--vocab", published / "vocab.txt"]
    assert run(*two, out, *arguments, *vocab, "--force").exit_code == 0
    inside = out / "spacy-elmo-old-0.0.0" / "spacy_elmo_old"
    assert load_head(inside)[1].words == WORDS
    result = run(weights, tmp_path / "new", *arguments, *vocab)
    assert result.exit_code == 1 and "--vocab is for a published head" in result.output


def test_a_warm_state_of_another_language(published: Path, tmp_path: Path) -> None:
    result = run(published, tmp_path / "one", "-n", "old", "-b", "none", "--lang", "de")
    assert "was computed from English" in result.output and "'de'" in result.output
    text = tmp_path / "text.txt"
    text.write_text("Ein Satz. Noch einer! " * 5, encoding="utf-8")
    arguments = ["-n", "old", "-b", "none", "--warm-text", text, "--lang", "de"]
    result = run(published, tmp_path / "other", *arguments)
    assert result.exit_code == 0 and "English" not in result.output
    one, other = (next((tmp_path / n).rglob("config.json")).parent for n in ("one", "other"))
    assert not torch.allclose(load_bilm(one).warm_state()[1], load_bilm(other).warm_state()[1])
    assert json.loads((other / "meta.json").read_text(encoding="utf-8"))["lang"] == "de"


def test_half_precision_stays_half(tmp_path: Path) -> None:
    arguments = ["--name", "mine", "--build", "none"]
    assert run("en_sm", tmp_path, *arguments).exit_code == 0
    version = json.loads((EMBEDDED / "en_sm" / "meta.json").read_text("utf-8"))["version"]
    inside = tmp_path / f"spacy-elmo-mine-{version}" / "spacy_elmo_mine"
    for name in ("weights.safetensors", "head.safetensors"):
        size = (EMBEDDED / "en_sm" / name).stat().st_size
        assert abs((inside / name).stat().st_size - size) < 100


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--name", "my-lang"], "'my-lang' cannot be the name"),
        (["--name", "my_"], "'my_' cannot be the name"),  # pip would not take the package's
        (["--name", "my__lang"], "'my__lang' cannot be the name"),  # nor tell it from my_lang's
        (["--name", "en_sm"], "no name of embedded weights"),
        (["--version", "first"], "Invalid version: 'first'"),
        (["--build", "rpm"], "--build is 'rpm'"),
    ],
)
def test_refusals(arguments: Sequence[str], said: str, weights: Path, tmp_path: Path) -> None:
    result = run(weights, tmp_path / "out", *arguments)
    assert result.exit_code == 1
    assert said in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


def test_the_command_that_installs(weights: Path, tmp_path: Path, monkeypatch) -> None:
    """A name without a slash would be looked for on the package index."""
    (tmp_path / "my words").mkdir()
    monkeypatch.chdir(tmp_path / "my words")
    result = run(weights, ".", "--build", "none")
    assert f"pip install '{Path('spacy-elmo-tiny-0.0.0').resolve()}'\n" in result.output


def test_damaged_weights_leave_nothing(weights: Path, tmp_path: Path) -> None:
    (weights / "head.safetensors").write_bytes(b"damaged")
    result = run(weights, tmp_path / "out", "--build", "none")
    assert result.exit_code == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [193, ["a"], "193"])
def test_a_card_with_another_kind_of_name(name: Any, weights: Path, tmp_path: Path) -> None:
    (weights / "meta.json").write_text(json.dumps({"name": name}), encoding="utf-8")
    result = run(weights, tmp_path / "out", "--build", "none")
    assert result.exit_code == 1
    reason = "cannot be the name of weights" if name == "193" else "card's 'name' must be a text"
    assert reason in " ".join(result.output.split())


def test_force(weights: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(weights, out, "--build", "none").exit_code == 0
    result = run(weights, out, "--build", "none", "--no-head")
    assert result.exit_code == 1 and "--force" in result.output
    assert list(out.rglob("head.safetensors"))
    assert run(weights, out, "--build", "none", "--no-head", "--force").exit_code == 0
    assert not list(out.rglob("head.safetensors"))
    root = out / "spacy-elmo-tiny-0.0.0"
    for name in ("dist", "build", "spacy_elmo_tiny.egg-info"):  # of an installation
        (root / name).mkdir()
    assert run(weights, out, "--build", "none", "--force").exit_code == 0
    assert not (root / "dist").exists()


def test_nothing_else_is_replaced(weights: Path, tmp_path: Path) -> None:
    root = tmp_path / "out" / "spacy-elmo-tiny-0.0.0"
    assert run(weights, tmp_path / "out", "--build", "none").exit_code == 0
    (root / "thesis.txt").touch()
    result = run(weights, tmp_path / "out", "--build", "none", "--force")
    assert result.exit_code == 1 and "thesis.txt" in result.output
    (root / "thesis.txt").unlink()
    (root / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    result = run(weights, tmp_path / "out", "--build", "none", "--force")
    assert result.exit_code == 1 and "is not replaced" in result.output
    assert (root / "LICENSE").exists()
    result = run(weights, weights / "config.json", "--build", "none")
    assert result.exit_code == 1 and "is not a directory" in result.output


@pytest.mark.parametrize("spec", [None, ModuleSpec("build", None)])  # or a folder of that name
def test_without_build(
    spec: ModuleSpec | None, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacy_elmo.cli.package.find_spec", lambda name: spec)
    result = run(weights, tmp_path / "out")
    assert result.exit_code == 1
    assert "pip install build" in result.output and "--build none" in result.output
    assert not (tmp_path / "out").exists()
