"""What is published: the contents of the wheel and of the source distribution, and their texts."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from importlib.util import find_spec
from pathlib import Path

import pytest
import srsly

from spacy_elmo.about import __version__

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spacy_elmo"


def tracked() -> set[str]:
    """The files of the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        pytest.skip("needs a clone of the repository")
    return {name for name in result.stdout.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both distributions, built by the setuptools that is installed."""
    if find_spec("setuptools") is None:
        pytest.skip("needs setuptools")
    out = tmp_path_factory.mktemp("dist")
    code = (
        "import sys; from setuptools import build_meta as b; "
        "out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"
    )
    copy = tmp_path_factory.mktemp("copy")  # setuptools writes into the folder that it builds
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-c", code, out], cwd=copy, check=True, capture_output=True)
    return out


def wheel_files(dist: Path) -> dict[str, bytes]:
    [path] = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.slow
def test_wheel(dist: Path) -> None:
    """All of the package, its metadata and licences, and nothing else."""
    files = wheel_files(dist)
    ours = {name for name in files if not name.startswith(f"spacy_elmo-{__version__}.dist-info/")}
    assert ours == {name for name in tracked() if name.startswith("spacy_elmo/")}
    assert "spacy_elmo/py.typed" in ours
    info = {name.partition("/")[2] for name in set(files) - ours}
    assert info == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt",
        "licenses/LICENSES/MIT.txt", "licenses/LICENSES/CC-BY-SA-4.0.txt",
    }  # fmt: skip
    [path] = dist.glob("*.whl")
    assert path.stat().st_size < 16e6


@pytest.mark.slow
def test_source_distribution(dist: Path) -> None:
    """All of the repository but what is only for its own workshop."""
    [path] = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    workshop = {".gitignore"} | {name for name in tracked() if name.startswith(".ci/")}
    assert tracked() - names == workshop
    made = {name for name in names - tracked() if not name.startswith("spacy_elmo.egg-info/")}
    assert made == {"PKG-INFO", "setup.cfg"}


@pytest.mark.slow
def test_metadata(dist: Path) -> None:
    files = wheel_files(dist)
    text = files[f"spacy_elmo-{__version__}.dist-info/METADATA"].decode("utf-8")
    metadata = message_from_string(text)
    assert metadata["License-Expression"] == "MIT AND CC-BY-SA-4.0"
    assert set(metadata["Requires-Python"].split(",")) == {">=3.10", "<3.14"}
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    extras = set(metadata.get_all("Provides-Extra"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("| extra | for |") :].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert extras - {"test", "test-slow", "dev"} == set(re.findall(r"`(\w+)`", " ".join(cells)))


def test_one_version() -> None:
    """In the code; the citation and the changelog follow it."""
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    assert citation["version"] == __version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([^\]]+)\]", changelog, flags=re.MULTILINE)[0] == __version__
    found = [
        path.name
        for path in [*ROOT.glob("*.py"), *ROOT.glob("*.toml"), *PACKAGE.glob("*.py")]
        if f'"{__version__}"' in path.read_text(encoding="utf-8")
    ]
    assert found == ["about.py"]


def test_citation() -> None:
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    paper = citation["preferred-citation"]
    assert paper["authors"][0]["family-names"] == "Peters" and paper["year"] == 2018
