"""A typo in an argument is reported before anything large is imported or read, in every command,
and on the standard error stream alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from typer.main import get_group

from spacy_elmo.cli import app

# What each command is given, and what it says. Text, weights and so on are there; "gone" is not.
TYPOS = {
    "demo": [("-w gone", "Cannot find the ELMo weights 'gone'")],
    "add": [
        ("gone.cfg new.cfg", "Cannot read the config gone.cfg"),
        ("tagger.cfg text.txt", "'text.txt' already exists. Use --force"),
    ],
    "compare": [
        ("gone.cfg", "Cannot read the config gone.cfg"),
        ("tagger.cfg -w gone", "Cannot find the ELMo weights 'gone'"),
        ("pipeline -w gone", "Cannot find the ELMo weights 'gone'"),
        ("tagger.cfg -w weights", "There is no train set."),
        ("tagger.cfg --sizes 10,1e3", "--sizes is '10,1e3'"),
        ("tagger.cfg -o out.doc", "'out.doc' cannot be a picture"),
    ],
    "info": [("gone", "Cannot find the ELMo weights 'gone'")],
    "download": [("gone", "Found ['gone']")],
    "encode": [
        ("text.txt out.npz -w weights", "end its name in .parquet or .npy"),
        ("gone out.npy -w weights", "No texts at 'gone'"),
        ("text.txt out.npy -w gone", "Cannot find the ELMo weights 'gone'"),
        ("text.txt out.npy -w weights --level word", "level is 'word'"),
        ("text.txt out.npy -p gone", "Can't find model 'gone'"),
        ("text.txt out.npy --layers both", "layers is 'both'; it must be 'mix', 'top' or 'all'"),
        ("text.txt out.npy -p pipeline --lang en", "drop --lang"),
    ],
    "convert": [
        ("weights out --to publishd", "--to is 'publishd'"),
        ("weights text.txt", "'text.txt' is not a directory"),
        ("gone out", "Cannot find the ELMo weights 'gone'"),
    ],
    "init-config": [
        ("out.cfg --size huge", "The size is 'huge'"),
        ("tagger.cfg", "'tagger.cfg' already exists. Use --force"),
    ],
    "tokenize": [
        ("gone out", "No texts at 'gone'"),
        ("text.txt text.txt", "'text.txt' is not a directory"),
    ],
    "pretrain": [
        ("gone.cfg out", "Cannot read the config gone.cfg"),
        ("pretrain.cfg text.txt", "'text.txt' is a file"),
        ("pretrain.cfg out --from gone", "Cannot find the ELMo weights 'gone'"),
        ("pretrain.cfg out --training.max_steps", "max_steps is True"),
        ("pretrain.cfg out -g 99", "There is no GPU 99"),
        ("pretrain.cfg out --paths.train gone", "No texts at 'gone'"),
        ("pretrain.cfg out --paths.dev gone", "No texts at 'gone'"),
        ("pretrain.cfg out --paths.vocab gone", "Cannot read the vocabulary gone"),
    ],
    "plot-training": [
        ("log.jsonl -o out.doc", "'out.doc' cannot be a picture"),
        ("log.jsonl -o gone/out.png", "its directory must exist"),
        ("gone", "no losses in a log at 'gone'"),
    ],
    "perplexity": [
        ("gone -w weights", "No texts at 'gone'"),
        ("text.txt -w gone", "Cannot find the ELMo weights 'gone'"),
    ],
    "predict": [
        ("a.blank -w weights", "no blank"),
        ("___ -w gone", "Cannot find the ELMo weights 'gone'"),
    ],
    "senses": [
        ("bank --in text.txt -w weights -o out.doc", "'out.doc' cannot be a picture"),
        ("bank --in gone -w weights", "No texts at 'gone'"),
        ("bank --in text.txt -w gone", "Cannot find the ELMo weights 'gone'"),
    ],
    "plot-mix": [
        ("pipeline -o out.doc", "'out.doc' cannot be a picture"),
        ("gone -o out.png", "Can't find model 'gone'"),
    ],
}
SCRIPT = """
import contextlib, io, json, sys
import spacy.cli, spacy.util
from spacy_elmo.cli import app
from spacy_elmo.pretraining import prepare
from spacy_elmo.weights.native import Weights

def read(*arguments, **settings):
    raise RuntimeError("weights, a pipeline or a corpus are read")

Weights.load = prepare.count_corpus = spacy.util.load_model_from_path = read
before = set(sys.modules)
for command in json.load(sys.stdin):
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        try:
            app(command, standalone_mode=False)
            code = 0
        except SystemExit as end:
            code = end.code
    new = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
    print(json.dumps([code, out.getvalue(), said.getvalue(), new]))
"""
HEAVY = {
    "h5py", "joblib", "matplotlib", "numba", "pandas", "PIL", "pyarrow", "ray", "scipy", "sklearn",
}  # fmt: skip


def test_typos(inputs: Path) -> None:
    """In one process: the largest of what is imported is spaCy, which brings PyTorch."""
    assert set(TYPOS) == set(get_group(app).commands)
    typos = [(command, *typo) for command, some in TYPOS.items() for typo in some]
    commands = json.dumps([[command, *given.split()] for command, given, _ in typos])
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=commands, cwd=inputs, capture_output=True,
        text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    lines = result.stdout.splitlines()
    for (command, given, expected), line in zip(typos, lines, strict=True):
        code, out, said, new = json.loads(line)
        assert (code, out) == (1, ""), (command, given)
        assert expected in " ".join(said.split()), (command, given, said)
        assert not HEAVY & {*new}, (command, given)
    assert not {path.name for path in inputs.iterdir()} & {
        "out", "out.npy.parts", "out.cfg", "comparison"
    }  # fmt: skip
