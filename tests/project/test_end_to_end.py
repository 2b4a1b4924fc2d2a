"""The main use, from spaCy's own config to an installed package, by the commands of the README."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from .sentences import annotated_docs

# What follows the commands of the README, which train.
PACKAGED = """\
python -m spacy evaluate out/model-best dev.spacy
python -m spacy package out/model-best . --name places --version 1.0.0 --build none
pip install ./en_places-1.0.0
python -c 'import spacy; print(spacy.load("en_places")("Anna lives in Dover.").ents)'
"""
README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("setuptools") is None, reason="pip builds packages with setuptools")
def test_from_a_config_to_an_installed_package(tmp_path: Path) -> None:
    page = README.read_text(encoding="utf-8")
    [commands] = re.findall(r"^```bash\n(python -m spacy init config.*?)^```$", page, re.M | re.S)
    docs = DocBin(docs=annotated_docs(spacy.blank("en").vocab))
    docs.to_disk(tmp_path / "train.spacy")
    docs.to_disk(tmp_path / "dev.spacy")
    site = str(tmp_path / "site")
    pip = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", site]
    short = "--training.max_steps 150 --training.eval_frequency 50 --training.dropout 0.0"
    output = {}
    for line in (commands + PACKAGED).splitlines():
        program, *arguments = shlex.split(line)
        command = [sys.executable, *(["-m", "pip"] if program == "pip" else []), *arguments]
        if program == "pip":
            command += pip
        variables = {**os.environ, "PYTHONPATH": site, "SPACY_CONFIG_OVERRIDES": short}
        result = subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True
        )
        assert result.returncode == 0, f"{line}\n{result.stdout}\n{result.stderr}"
        output[" ".join(arguments[:3])] = result.stdout
    assert len(output) == 7
    assert list(output.values())[-1] == "(Anna, Dover)\n"
    [score] = re.findall(r"NER F +([\d.]+)", output["-m spacy evaluate"])
    assert float(score) > 90
    [package] = Path(site).glob("en_places-*.dist-info")
    assert "Requires-Dist: spacy-elmo" in (package / "METADATA").read_text(encoding="utf-8")
