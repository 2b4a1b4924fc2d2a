"""The pipeline and the biLM alone, each as a wheel that pip installs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import typer
from bilm import elmo
from spacy.cli.package import package
from wasabi import msg

from spacy_elmo.cli.options import report_errors
from spacy_elmo.text.readers import blank_pipeline
from spacy_elmo.weights.find import find_weights


@report_errors("Cannot build a wheel")
def main(run: Path, lang: str = "en", name: str = "elmo_tasks", version: str = "1.0.0") -> None:
    """Write RUN/wheels/*.whl: LANG_NAME, and a pipeline of the biLM alone, LANG_bilm.

    The biLM is in half precision and without its head.
    """
    parts, wheels = run / "packages", run / "wheels"
    for folder in (parts, wheels):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    weights = (run / "bilm.txt").read_text(encoding="utf-8").strip()
    elmo("convert", weights, parts / "half", "--to", "native", "--half", "--no-head")
    half = find_weights(parts / "half")
    nlp = blank_pipeline(half, lang)
    nlp.add_pipe("elmo", config={"model": {"weights": half.where}})
    nlp.initialize()
    nlp.to_disk(parts / "bilm")
    package(parts / "bilm", parts, name="bilm", version=version, create_sdist=False)
    package(run / "pipeline", parts, name=name, version=version, create_sdist=False)
    # What they require is here already; with setuptools, pip needs no network to build.
    isolated = [] if find_spec("setuptools") is None else ["--no-build-isolation"]
    for folder in sorted(parts.iterdir()):
        if folder.name not in ("half", "bilm"):
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *isolated]
            subprocess.run([*pip, "--wheel-dir", str(wheels), str(folder)], check=True)
    for wheel in sorted(wheels.iterdir()):
        msg.good(f"{wheel.stat().st_size / 1e6:.1f} MB", str(wheel))


if __name__ == "__main__":
    typer.run(main)
