"""A packaged pipeline is installed where there is no clone, together with this package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.cli.package import package

ROOT = Path(__file__).parents[2]
TEXT = "We moored the boat at the bank."
READ = """
import numpy, spacy, spacy_elmo, sys
doc = spacy.load("en_bilm")(sys.argv[1])
numpy.save("vectors.npy", doc.tensor)
print(spacy_elmo.__file__)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="looks for bin and lib")
@pytest.mark.skipif(find_spec("setuptools") is None, reason="pip builds packages with setuptools")
def test_two_wheels_in_a_fresh_environment(tmp_path: Path) -> None:
    for name in ("hatchling", "hatch_fancy_pypi_readme"):
        pytest.importorskip(name)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp.initialize()
    nlp.to_disk(tmp_path / "bilm")
    package(tmp_path / "bilm", tmp_path, name="bilm", create_wheel=False, create_sdist=False)
    root = tmp_path / "en_bilm-0.0.0"
    assert "| **License** | `CC BY-SA 4.0` |" in (root / "README.md").read_text(encoding="utf-8")

    def run(*command: str | Path) -> str:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)

    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    others = shutil.ignore_patterns(".*", "build", "dist", "assets", "runs", "tests")
    shutil.copytree(ROOT, tmp_path / "clone", ignore=others)  # building writes into it
    to = ("--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path)
    run(*pip, "wheel", *to, root, tmp_path / "clone")
    run(sys.executable, "-m", "venv", "--without-pip", "fresh")
    # What both need is there, but not this clone: a .pth in a folder that a .pth names is not read.
    [site] = (tmp_path / "fresh").glob("lib/python3*/site-packages")
    needed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "needed.pth").write_text("\n".join(needed), encoding="utf-8")
    python = tmp_path / "fresh" / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-index", *tmp_path.glob("*.whl"))
    assert Path(run(python, "-c", READ, TEXT).strip()).is_relative_to(site)
    difference = np.load(tmp_path / "vectors.npy") - nlp(TEXT).tensor
    assert np.abs(difference).max() < 1e-5
