"""``python -m spacy elmo init-config``: a config for `elmo pretrain`, to begin with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

CLIPS = {"cell_clip": 3, "proj_clip": 3}
NO_CLIPS = {"cell_clip": None, "proj_clip": None}  # a GPU is faster without

# The models by their sizes. The original is that of Peters et al. 2018.
MODELS: dict[str, dict[str, Any]] = {
    "xs": {
        "filters": [[1, 16], [2, 32], [3, 64], [4, 128]],
        "n_highway": 1, "projection_dim": 64, "dim": 256, **NO_CLIPS,
    },
    "sm": {
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 128], [6, 128]],
        "n_highway": 1, "projection_dim": 128, "dim": 512, **NO_CLIPS,
    },
    "md": {
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512]],
        "n_highway": 1, "projection_dim": 256, "dim": 2048, **NO_CLIPS,
    },
    "original": {
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2, "projection_dim": 512, "dim": 4096, **CLIPS,
    },
}  # fmt: skip
COMMON = {"char_dim": 16, "activation": "relu", "n_layers": 2, "use_skip_connections": True}

# Many small steps learn more from the same text than few large ones; a GPU wants large ones.
CPU = {"batch_words": 1024, "matmul_precision": "medium"}
GPU = {"batch_words": 8192, "matmul_precision": "high"}

TEMPLATE = """\
# A biLM of the size {size}, {parameters:.1f} M parameters, vectors of {width} numbers.
#
#   python -m spacy elmo tokenize train.txt corpus/train --lang {lang}
#   python -m spacy elmo tokenize heldout.txt corpus/dev --lang {lang}
#   python -m spacy elmo pretrain config.cfg training{gpu_id} \\
#       --paths.train corpus/train --paths.dev corpus/dev

# Raw text is read without `tokenize` too, see [corpora] in docs/pretraining.md.
[paths]
train = null
dev = null
# Words to be predicted, one a line, the most frequent first; null: those of the training text.
vocab = null
# A biLM to start from; null: random numbers.
weights = null

[model]
{model}
# Positions of a word: its bytes and two marks. Longer words are cut (how many, is printed).
max_characters_per_token = 50

[vocab]
max_size = 50000
min_count = 2

[corpus]
max_words = 100
# Words shuffled together in memory; a larger text is read through this buffer.
buffer_words = 4000000

[softmax]
# "full" is exact, and slow with a large vocabulary.
kind = "sampled"
n_candidates = {n_candidates}

# The learning rate rises over warmup_steps, stays, and falls to zero over the last decay_steps.
[training]
seed = 0
batch_words = {batch_words}
max_steps = {max_steps}
# End after so many passes over the text, if they take fewer steps; 0: no such end.
max_epochs = 0
learning_rate = {learning_rate}
warmup_steps = 500
decay_steps = {decay_steps}
dropout = {dropout}
max_grad_norm = 1.0
# "highest", "high" or "medium": how float32 products may be rounded in the training.
matmul_precision = "{matmul_precision}"
# Products in bfloat16: much faster on a processor that has it (avx512_bf16, amx), slower on others.
mixed_precision = false
# Batches of one step.
accumulate_gradient = 1
eval_every = 1000
eval_words = 50000
log_every = 100
checkpoint_seconds = 300
"""


def init_config_cli(
    # fmt: off
    out: Path = typer.Argument(
        "-", help="File to write, or - for the terminal", metavar="OUT", allow_dash=True
    ),
    size: str = typer.Option("sm", "--size", "-s", help=f"Size of the model: {', '.join(MODELS)}"),
    lang: str = typer.Option("en", "--lang", "-l", help="Language of the text"),
    gpu: bool = typer.Option(False, "--gpu", "-G", help="For training on a GPU"),
    force: bool = typer.Option(False, "--force", "-F", help="Write over a file"),
    # fmt: on
) -> None:
    """
    Write a config for `elmo pretrain`.

    `sm` is the embedded model's size, for a CPU; `xs` is for small corpora; `md` and `original` want a
    GPU.
    """
    from ..bilm.files import write_text

    if size not in MODELS:
        msg.fail(f"There is no size '{size}'; known are {', '.join(MODELS)}.", exits=1)
    text = make_config(size, lang, gpu)
    if str(out) == "-":
        print(text, end="")
        return
    if out.exists() and not force:
        msg.fail(f"'{out}' exists; give --force to write over it.", exits=1)
    try:
        write_text(out, text)
    except OSError as error:
        msg.fail("Cannot write the config", str(error), exits=1)
    msg.good("Wrote a config", str(out))


def make_config(size: str, lang: str, gpu: bool) -> str:
    """The text of a config.

    Args:
        size: one of `MODELS`.
        lang: code of the text's language.
        gpu: for a GPU.
    """
    import torch

    from ..bilm.config import BiLMConfig
    from ..bilm.model import BiLM

    shape = {**MODELS[size], **COMMON}
    config = BiLMConfig.from_dict(shape)
    with torch.device("meta"):
        parameters = sum(p.numel() for p in BiLM(config).parameters())
    large = size in ("md", "original")
    return TEMPLATE.format(
        size=size,
        lang=lang,
        parameters=parameters / 1e6,
        width=config.width,
        gpu_id=" --gpu-id 0" if gpu else "",
        model="\n".join(f"{name} = {json.dumps(value)}" for name, value in shape.items()),
        n_candidates=8192 if large else 2048,
        max_steps=200_000 if large else 25_000,
        decay_steps=60_000 if large else 8_000,
        learning_rate=0.0005 if large else 0.002,
        dropout=0.1 if large else 0.0,
        **(GPU if gpu else CPU),
    )
