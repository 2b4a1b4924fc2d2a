"""The commands that write files, as small jobs for `killed.py` and `full_disk.py`."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from trials import Job

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.cli import app
from spacy_elmo.encoding.formats import output_files
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining.state import read_checkpoint
from spacy_elmo.weights.convert.published import write_published
from spacy_elmo.weights.find import load_bilm
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import save_bilm

MODEL = BiLMConfig(filters=((1, 8), (2, 16)), projection_dim=16, dim=32, n_layers=2, char_dim=4)
CONFIG = """
[paths]
train = "{text}"
dev = "{text}"

[model]
filters = [[1, 8], [2, 16]]
char_dim = 4
projection_dim = 16
dim = 32
n_layers = 2

[softmax]
kind = "full"

[vocab]
min_count = 1

[training]
batch_words = 200
max_steps = 12
warmup_steps = 2
decay_steps = 5
dropout = 0.2
eval_every = 5
eval_words = 200
log_every = 3
checkpoint_seconds = 0
keep_checkpoints = 2
"""


def elmo(*arguments: object) -> None:
    """A command of `python -m spacy elmo`."""
    app([str(each) for each in arguments], standalone_mode=False)


def make_jobs(sound: Path) -> dict[str, Job]:
    """All jobs; what they read is written to a folder."""
    torch.manual_seed(0)
    rng = random.Random(0)
    own, published = sound / "own", sound / "published"
    own.mkdir(parents=True)
    published.mkdir()
    words = [f"word{i}" for i in range(200)]
    lines = [" ".join(rng.choices(words, k=rng.randint(2, 30))) for _ in range(300)]
    text, raw, config = sound / "text.txt", sound / "raw.txt", sound / "config.cfg"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    raw.write_text(" .\n".join(lines) + " .\n", encoding="utf-8")
    config.write_text(CONFIG.format(text=text), encoding="utf-8")
    model, vocab = BiLM(MODEL).eval(), Vocabulary([*SPECIALS, *words])
    head = SoftmaxHead(len(vocab), MODEL.projection_dim)
    torch.nn.init.normal_(head.weight)
    save_bilm(model, own, Card({"name": "small", "lang": "en"}, {"LICENSE": "CC0\n"}))
    save_head(head, vocab, own)
    write_published(model, published, head.state_dict())
    vocab.write(published / "vocab.txt")

    def encode(out: Path, *more: str) -> None:
        elmo("encode", text, out, "-w", own, "--tokenized", "--quiet", *more)

    def encoding(suffix: str) -> Job:
        name = f"out{suffix}"
        return Job(
            lambda room: encode(room / name),
            lambda room: encode(room / name, "--resume"),
            tuple(file.name for file in output_files(Path(name))),
            resumable=True,
        )

    def pretrain(room: Path, *more: str) -> None:
        elmo("pretrain", config, room / "run", "--quiet", *more)

    def convert(room: Path, to: str, *more: str) -> None:
        source = published if to == "native" else own
        elmo("convert", source, room / "weights", "--to", to, *more)

    return {
        "convert": Job(
            lambda room: convert(room, "published"),
            lambda room: convert(room, "published", "--force"),
            ("weights",),
        ),
        "convert-force": Job(
            lambda room: convert(room, "native", "--force"),
            lambda room: convert(room, "native", "--force"),
            ("weights",),
            before=lambda room: convert(room, "native", "--half"),
        ),
        **{f"encode-{form}": encoding(f".{form}") for form in ("parquet", "npy", "hdf5")},
        "pretrain": Job(
            pretrain,
            lambda room: pretrain(room, *["--resume"] * (room / "run").exists()),
            (),
            check=check_run,
            resumable=True,
        ),
        "tokenize": Job(
            lambda room: elmo("tokenize", raw, room / "shards", "-w", "900", "--quiet"),
            lambda room: (
                None
                if (room / "shards").exists()
                else elmo("tokenize", raw, room / "shards", "-w", "900", "--quiet")
            ),
            ("shards",),
        ),
    }


def check_run(room: Path) -> None:
    """Fails on half a model, checkpoint or file of settings."""
    run = room / "run"
    for name in ("model-best", "model-last"):
        if (run / name).exists():
            load_bilm(run / name), load_head(run / name)
    for file in run.glob("checkpoint*"):
        read_checkpoint(file)
