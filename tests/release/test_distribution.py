"""What is published: the contents of the wheel and of the source distribution, and their texts."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
import srsly

from spacy_elmo.about import __uri__, __version__

from .helpers import ROOT, build, contents, tracked

INFO = f"spacy_elmo-{__version__}.dist-info/"
SBOM = ROOT / "LICENSES" / "sbom.cdx.json"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The source distribution, and the wheel without a library."""
    return [build(kind, tmp_path_factory.mktemp(kind)) for kind in ("sdist", "wheel")]


@pytest.fixture(scope="module")
def wheel(dist: list[Path]) -> dict[str, bytes]:
    return contents(dist[1])


@pytest.fixture(scope="module")
def metadata(wheel: dict[str, bytes]) -> Message:
    return message_from_bytes(wheel[f"{INFO}METADATA"])


@pytest.mark.slow
def test_wheel(dist: list[Path], wheel: dict[str, bytes]) -> None:
    """All of the package, its metadata, licences and bill of materials, and nothing else."""
    ours = {name for name in wheel if not name.startswith(INFO)}
    assert ours == {name for name in tracked() if name.startswith("spacy_elmo/")}
    assert {name.removeprefix(INFO) for name in set(wheel) - ours} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "sboms/sbom.cdx.json",
        "licenses/LICENSES/MIT.txt", "licenses/LICENSES/CC-BY-SA-4.0.txt",
    }  # fmt: skip
    assert dist[1].stat().st_size < 14e6


@pytest.mark.slow
def test_source_distribution(dist: list[Path]) -> None:
    """All of the repository but what is only for its own workshop."""
    with tarfile.open(dist[0]) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert all(name.startswith((".ci/", ".git")) for name in tracked() - names)
    assert names - tracked() == {"PKG-INFO"}


@pytest.mark.slow
def test_metadata(metadata: Message) -> None:
    extras = set(metadata.get_all("Provides-Extra", []))
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    table = page[page.index("| extra | for |") :].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    workshop = {"dev", "docs", "lint", "release", "test", "test-docs", "test-slow"}
    assert extras - workshop == set(re.findall(r"`(\w+)`", " ".join(cells)))
    urls = " ".join(metadata.get_all("Project-URL", []))
    assert not __uri__ or f"Source, {__uri__}" in urls


@pytest.mark.slow
def test_package_index(dist: list[Path], metadata: Message) -> None:
    """The index accepts both, and shows the README without a link into the repository."""
    pytest.importorskip("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, dist)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    readme = metadata.get_payload()
    assert isinstance(readme, str) and "python -m spacy elmo add" in readme
    targets = re.findall(r"\]\(([^()\s]+)\)", readme)
    assert targets and all(re.match("https?:|#", target) for target in targets)
    assert not __uri__ or any(target.startswith(__uri__) for target in targets)


def test_bill_of_materials() -> None:
    """It names the files of the embedded weights as they are."""
    [model] = json.loads(SBOM.read_text(encoding="utf-8"))["components"]
    names = {file["name"]: file["hashes"][0]["content"] for file in model["components"]}
    files = (ROOT / "spacy_elmo" / "models").glob("*/*.safetensors")
    found = {
        file.relative_to(ROOT).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }
    assert names == found


def test_universe(capsys: pytest.CaptureFixture[str]) -> None:
    """The entry for spaCy's universe: its fields, its pictures, and its code, which runs."""
    entry = srsly.read_json(ROOT / "docs" / "universe.json")
    assert set(entry) == {
        "id", "title", "slogan", "description", "github", "pip", "code_example", "code_language",
        "thumb", "image", "author", "category", "tags",
    }  # fmt: skip
    assert entry["id"] == entry["pip"] == "spacy-elmo"
    assert f"https://github.com/{entry['github']}" == __uri__ or entry["github"] == __uri__ == ""
    assert all((ROOT / entry[name]).is_file() for name in ("thumb", "image"))
    exec("\n".join(entry["code_example"]), {})
    shape, similarity = capsys.readouterr().out.splitlines()
    assert shape == "(15, 256)" and 0 < float(similarity) < 0.9


def test_one_version() -> None:
    """In the code; the citation, the changelog and the bill of materials follow it."""
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    assert citation["version"] == __version__
    paper = citation["preferred-citation"]
    assert paper["authors"][0]["family-names"] == "Peters" and paper["year"] == 2018
    assert f'"{INFO}top_level.txt"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([^\]]+)\]", changelog, flags=re.MULTILINE)[0] == __version__
    assert json.loads(SBOM.read_text())["metadata"]["component"]["version"] == __version__
