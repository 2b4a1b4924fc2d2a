"""The vectors of other models for all texts of some tasks, for `--embedded OUT` of other scripts.

    python benchmarks/peers/embed.py OUT DATA [--models minilm en_core_web_sm] [--tasks …]

`downstream.py` has the tasks. For `six_tasks.py`: ``--docs CORPORA/TASK/*.spacy``.

Each model reads in an environment of its own, see `peers.py`, and writes its layers in half
precision: MiniLM every second one, a word's vector being the mean of its pieces'; en_core_web_sm
the output of its tok2vec. See `embedded.py` for the files. 250,000 words take 0.8 GB for MiniLM.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from peers import HERE, python_of
from spacy.lang.en import English
from spacy.tokens import DocBin

sys.path.append(str(HERE.parent / "quality"))

from tasks import TASKS

MODELS = ("minilm", "en_core_web_sm")


def sentences(data: Path, tasks: list[str], files: Iterable[Path] = ()) -> list[tuple[str, ...]]:
    """The words of all texts of the tasks and of .spacy files, each text once."""
    splits = [TASKS[name].read(data, split) for name in tasks for split in ("train", "dev", "test")]
    vocab = English().vocab
    bins = [DocBin().from_disk(file).get_docs(vocab) for file in files]
    docs = chain.from_iterable([*splits, *bins])
    return list({tuple(token.text for token in doc): None for doc in docs if len(doc)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--tasks", nargs="+", choices=TASKS)
    parser.add_argument("--docs", nargs="+", type=Path, default=[], help=".spacy files instead")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "sentences.json"
    tasks = arguments.tasks or ([] if arguments.docs else list(TASKS))
    found = sentences(arguments.data, tasks, arguments.docs)
    file.write_text(json.dumps(found), encoding="utf8")
    # spaCy there would find our packages and import what they need, which is missing there.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for model in arguments.models:
        script, out = HERE / f"embed_{model}.py", arguments.out / f"{model}.npy"
        command = [python_of(model), script, file, out]
        subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main()
