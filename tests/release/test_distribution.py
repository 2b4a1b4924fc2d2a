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
from runpy import run_path

import pytest
import srsly

from spacy_elmo.about import __uri__, __version__

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
    assert path.stat().st_size < 20e6


@pytest.mark.slow
def test_source_distribution(dist: Path) -> None:
    """All of the repository but what is only for its own workshop."""
    [path] = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    workshop = {name for name in tracked() if name.startswith((".ci/", ".git"))}
    assert tracked() - names == workshop
    made = {name for name in names - tracked() if not name.startswith("spacy_elmo.egg-info/")}
    assert made == {"PKG-INFO", "setup.cfg"}


@pytest.mark.slow
def test_metadata(dist: Path) -> None:
    files = wheel_files(dist)
    text = files[f"spacy_elmo-{__version__}.dist-info/METADATA"].decode("utf-8")
    metadata = message_from_string(text)
    assert metadata["License-Expression"] == "MIT AND CC-BY-SA-4.0"
    assert set(metadata["Requires-Python"].split(",")) == {">=3.10"}
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    extras = set(metadata.get_all("Provides-Extra"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("| extra | for |") :].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    workshop = {"dev", "docs", "lint", "release", "test", "test-docs", "test-slow"}
    assert extras - workshop == set(re.findall(r"`(\w+)`", " ".join(cells)))


@pytest.mark.slow
def test_package_index(dist: Path) -> None:
    """The index accepts both, and shows the README without a link into the repository."""
    pytest.importorskip("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, dist.iterdir())]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    text = wheel_files(dist)[f"spacy_elmo-{__version__}.dist-info/METADATA"].decode("utf-8")
    assert "make demo" in text and not relative_links(text)


def relative_links(markdown: str) -> list[str]:
    """The targets of links and images that are not addresses."""
    targets = re.findall(r"\]\(([^()\s]+)\)", markdown)
    return [target for target in targets if not re.match("https?:|#", target)]


def test_long_description() -> None:
    functions = run_path(str(ROOT / "setup.py"))
    describe, address = functions["long_description"], "https://example.org/us/spacy-elmo"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert relative_links(readme)
    assert not any(relative_links(describe(readme, where)) for where in ("", address))
    text = "![a [b]](docs/x.svg) and [c](docs/y.md#z), [d](#e), [f](https://example.org)"
    assert describe(text, "") == " and c, [d](#e), [f](https://example.org)"
    assert describe(text, address) == (
        f"![a [b]]({address}/raw/main/docs/x.svg) and [c]({address}/blob/main/docs/y.md#z), "
        "[d](#e), [f](https://example.org)"
    )


def test_project_urls() -> None:
    urls = run_path(str(ROOT / "setup.py"))["project_urls"]
    assert {"Source", "Documentation", "Issues", "Changelog"} <= set(urls("https://example.org/us"))
    assert all(url.startswith("https://") for url in urls("").values())


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
