"""The package, installed into an empty folder: does it predict what the pipeline predicts?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import spacy
import typer
from spacy.tokens import DocBin
from wasabi import msg

N_TEXTS = 20
PREDICT = """
import json, sys, spacy
nlp = spacy.load(sys.argv[1])
print(json.dumps([doc.to_json() for doc in nlp.pipe(json.load(sys.stdin))]))
"""


def main(run: Path, package: Path) -> None:
    """Install PACKAGE, a directory, a wheel or a pattern of its name, with pip, and compare it with
    RUN/pipeline."""
    found = list(package.parent.glob(package.name))  # pip writes versions in its own way
    if len(found) != 1:
        raise ValueError(f"There must be one package {package}, but there are {len(found)}.")
    [package] = found
    name = package.name.split("-")[0]
    [first, *_] = sorted((run / "corpus").glob("*/test.spacy"))
    docs = DocBin().from_disk(first).get_docs(spacy.blank("en").vocab)
    texts = [doc.text for doc in docs][:N_TEXTS]
    with tempfile.TemporaryDirectory() as site:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # What it requires is here already; with setuptools, pip needs no network to build it.
        options = ["--no-deps", *(["--no-build-isolation"] if find_spec("setuptools") else [])]
        subprocess.run([*pip, *options, "--target", site, str(package)], check=True)
        path = os.pathsep.join(filter(None, [site, os.environ.get("PYTHONPATH")]))
        result = subprocess.run(
            [sys.executable, "-c", PREDICT, name], input=json.dumps(texts), text=True, cwd=site,
            env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
    ours = json.dumps([doc.to_json() for doc in spacy.load(run / "pipeline").pipe(texts)])
    if read_rounded(result.stdout) != read_rounded(ours):
        msg.fail(f"The installed package {name} predicts something else", exits=1)
    msg.good(f"{name} is installed and predicts the same on {len(texts)} texts")


def read_rounded(text: str) -> object:
    """JSON with rounded numbers: scores may differ in the last digits."""
    return json.loads(text, parse_float=lambda number: round(float(number), 4))


if __name__ == "__main__":
    typer.run(main)
