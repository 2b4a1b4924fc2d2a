"""The main use, from spaCy's own config to an installed package, by the commands of the README."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
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
TEXTS = [
    "Peter paid the loan at Northbank .",
    "Maria saw a heron in Wales .",
    "",
    "One more  line.",
]
READ = """
import json, sys, numpy, spacy
nlp = spacy.load(sys.argv[1])
docs = list(nlp.pipe(json.loads(sys.argv[2])))
numpy.savez(sys.argv[3], *(doc.tensor for doc in docs))
print(json.dumps([[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]))
"""


def readme_commands(page: str) -> str:
    """The block of commands that makes a config and trains."""
    [content] = re.findall(r"^```bash\n(python -m spacy init config.*?)^```$", page, re.M | re.S)
    return content


def run(folder: Path, command: list[str], **variables: str) -> str:
    """What a command prints, which is run in a folder without the checkout on its path."""
    environment = {**os.environ, **variables}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"{shlex.join(command)}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def read_elsewhere(folder: Path, name: str, **variables: str) -> tuple[list, list[np.ndarray]]:
    """Entities and vectors of the texts, by a pipeline in a process of its own."""
    folder.mkdir()
    command = [sys.executable, "-c", READ, name, json.dumps(TEXTS), "vectors.npz"]
    entities = json.loads(run(folder, command, **variables))
    with np.load(folder / "vectors.npz") as arrays:
        return entities, [arrays[key] for key in arrays.files]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("setuptools") is None, reason="pip builds packages with setuptools")
def test_from_a_config_to_an_installed_package(tmp_path: Path) -> None:
    page = README.read_text(encoding="utf-8")
    docs = DocBin(docs=annotated_docs(spacy.blank("en").vocab))
    docs.to_disk(tmp_path / "train.spacy")
    docs.to_disk(tmp_path / "dev.spacy")
    site = str(tmp_path / "site")
    pip = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", site]
    short = "--training.max_steps 150 --training.eval_frequency 50 --training.dropout 0.0"
    output = {}
    for line in (readme_commands(page) + PACKAGED).splitlines():
        program, *arguments = shlex.split(line)
        command = [sys.executable, *(["-m", "pip"] if program == "pip" else []), *arguments]
        if program == "pip":
            command += pip
        variables = {"PYTHONPATH": site, "SPACY_CONFIG_OVERRIDES": short}
        output[" ".join(arguments[:3])] = run(tmp_path, command, **variables)
    assert len(output) == 7
    assert list(output.values())[-1] == "(Anna, Dover)\n"
    [score] = re.findall(r"NER F +([\d.]+)", output["-m spacy evaluate"])
    assert float(score) > 90

    trained = tmp_path / "out" / "model-best"
    entities, vectors = read_elsewhere(tmp_path / "here", str(trained))
    assert entities[0] == [["Peter", "PERSON"], ["Northbank", "ORG"]]
    assert [array.shape for array in vectors] == [(7, 96), (7, 96), (0, 96), (5, 96)]
    trained.rename(tmp_path / "gone")
    installed = read_elsewhere(tmp_path / "there", "en_places", PYTHONPATH=site)
    assert installed[0] == entities
    for ours, theirs in zip(vectors, installed[1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    [package] = Path(site).glob("en_places-*.dist-info")
    assert "Requires-Dist: spacy-elmo" in (package / "METADATA").read_text(encoding="utf-8")
