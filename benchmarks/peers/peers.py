"""Other implementations and models: an environment for each, and a process of it that reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CACHE = Path.home() / ".cache/spacy-elmo/peers"
OURS = "ours"
ENVIRONMENTS = {  # of each peer; its packages are in requirements-ENVIRONMENT.txt
    "allennlp": "allennlp",
    "simple_elmo": "tensorflow",
    "bilm": "tensorflow",
    "minilm": "minilm",
    "minilm_onnx": "minilm",
    "en_core_web_sm": "spacy",
}
MADE = {"minilm": "minilm", "minilm_onnx": "minilm"}  # by make_….py


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, which is made if it is not there yet.

    pip's own settings hold, so that a PyTorch without CUDA is taken from where it is.
    """
    if peer == OURS:
        return sys.executable
    name = ENVIRONMENTS[peer]
    requirements = HERE / f"requirements-{name}.txt"
    python, installed = CACHE / name / "bin/python", CACHE / name / requirements.name
    if not installed.exists() or installed.read_bytes() != requirements.read_bytes():
        print(f"Installing {name} into {CACHE / name}", file=sys.stderr)
        venv.create(CACHE / name, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--no-deps"]
        subprocess.run([*pip, "-r", str(requirements)], check=True)
        installed.write_bytes(requirements.read_bytes())
    return str(python)


def run(python: str, arguments: list[str], threads: int) -> str:
    """What a script prints in an environment; the program ends with its error if it fails."""
    settings = {
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": str(threads),
        "RAYON_NUM_THREADS": str(threads),  # of tokenizers
        "TF_NUM_INTRAOP_THREADS": str(threads),
        "TF_NUM_INTEROP_THREADS": "1",
        "TF_USE_LEGACY_KERAS": "1",  # where the LSTM of TensorFlow 1 is today
        "PYTHONUTF8": "1",  # vocab.txt is opened in the locale's encoding
    }
    env = os.environ | settings
    if python != sys.executable:  # spaCy there would find our packages, which miss theirs there
        env.pop("PYTHONPATH", None)
    process = subprocess.run([python, *arguments], env=env, capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{process.stderr}")
    return process.stdout


def weights_of(peer: str, sentences: Path) -> Path | None:
    """The directory of the weights that a peer has of its own, None if it takes others' or its
    package contains them. It is made if it is not there yet, and gone with the environment.

    Args:
        peer: its name, or `OURS`.
        sentences: the JSON file, from which it may be made.
    """
    if peer not in MADE:
        return None
    name, python = MADE[peer], python_of(peer)
    out = CACHE / ENVIRONMENTS[peer] / "weights" / name
    if not out.exists():
        print(f"Making {out}", file=sys.stderr)
        unfinished = out.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        run(python, [str(HERE / f"make_{name}.py"), str(unfinished), str(sentences)], 1)
        unfinished.rename(out)
    return out


def read(
    peer: str, weights: str, sentences: Path, threads: int = 1, **options: Any
) -> dict[str, Any]:
    """Have a peer read sentences in a process of its own; see `reader`.

    Args:
        peer: its name, or `OURS`.
        weights: a directory; for `OURS` anything that a ``weights`` setting can be.
        sentences: the JSON file.
        threads: of the process.
        options: of `reader`.
    """
    arguments = [str(HERE / f"read_{peer}.py"), weights, str(sentences)]
    for option, value in options.items():
        arguments += [f"--{option.replace('_', '-')}", str(value)]
    printed = run(python_of(peer), arguments, threads)
    return dict(json.loads(printed.splitlines()[-1]))
