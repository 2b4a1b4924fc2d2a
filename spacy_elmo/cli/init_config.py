"""``python -m spacy elmo init-config``: creates a config for `elmo pretrain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from wasabi import msg

from ..util.settings import check_choice
from . import options

WIDE = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
SMALL = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 128], [6, 128]]
# By size: "hour" trains for an hour on one core (docs/languages.md), "original" is that of Peters et
# al. 2018.
MODELS: dict[str, dict[str, Any]] = {
    "xs": {"filters": [[1, 16], *WIDE[1:4]], "projection_dim": 64, "dim": 256},
    "hour": {"filters": SMALL, "projection_dim": 128, "dim": 512},
    "sm": {"filters": SMALL, "projection_dim": 128, "dim": 768},
    "md": {"filters": WIDE[:6], "projection_dim": 256, "dim": 2048},
    "original": {
        "filters": WIDE, "projection_dim": 512, "dim": 4096,
        "n_highway": 2, "cell_clip": 3, "proj_clip": 3,  # a GPU is faster without clipping
    },
}  # fmt: skip
COMMON = {
    "n_highway": 1, "cell_clip": None, "proj_clip": None, "char_dim": 16, "activation": "relu",
    "n_layers": 2, "use_skip_connections": True, "unicode_normalization": "NFC",
    "lower_capitals": True,
}  # fmt: skip

XS = {
    "n_candidates": 2048, "max_steps": 25_000, "warmup_steps": 500, "decay_steps": 8_000,
    "max_epochs": 0, "learning_rate": 0.002, "dropout": 0.0,
}  # fmt: skip
LARGE = {
    **XS, "n_candidates": 8192, "max_steps": 200_000, "decay_steps": 60_000,
    "learning_rate": 0.0005, "dropout": 0.1,
}  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "xs": XS, "sm": XS, "md": LARGE, "original": LARGE,
    "hour": {  # reads about twelve million words; 6 MB in half precision
        **XS, "max_steps": 13_000, "warmup_steps": 650, "decay_steps": 4_300, "max_epochs": 10,
    },
}  # fmt: skip
# On a CPU, many small steps learn more from a text than few large ones; a GPU needs large batches.
CPU = {"batch_words": 1024, "matmul_precision": "medium"}
GPU = {"batch_words": 8192, "matmul_precision": "high"}

TEMPLATE = Path(__file__).with_name("pretrain_template.cfg")


@options.app.command("init-config")
def init_config_cli(
    out: Annotated[Path, typer.Argument(help="File to write, or - for the standard output", metavar="OUT", allow_dash=True)] = Path("-"),
    size: Annotated[str, typer.Option("--size", "-s", help=f"Size of the model: {', '.join(MODELS)}")] = "sm",
    lang: options.TextLang = "en",
    gpu: Annotated[bool, typer.Option("--gpu", "-G", help="Settings for training on a GPU")] = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """
    Create a config for `elmo pretrain`.

    The size `hour` trains in an hour of one core; `sm` is that of the embedded model and trains on
    a CPU; `xs` is for small corpora; `md` and `original` need a GPU.
    """
    with options.report_errors("Cannot write the config"):
        check_choice("The size", size, MODELS)
        options.check_new(out, force)
        text = make_config(size, lang, gpu)
        if str(out) == "-":
            print(text, end="")
            return
        options.write_new(out, text)
    msg.good("Wrote a config", str(out))


def make_config(size: str, lang: str, gpu: bool) -> str:
    """Make the text of a config.

    Args:
        size: a key of `MODELS`.
        lang: code of the text's language.
        gpu: settings for training on a GPU.
    """
    import torch

    from ..bilm.config import BiLMConfig
    from ..bilm.model import BiLM

    shape = {**COMMON, **MODELS[size]}
    config = BiLMConfig.from_dict(shape)
    with torch.device("meta"):
        parameters = sum(p.numel() for p in BiLM(config).parameters())
    values = SETTINGS[size] | (GPU if gpu else CPU)
    values |= {"size": size, "lang": lang, "parameters": parameters / 1e6, "width": config.width}
    values["model"] = "\n".join(f"{name} = {json.dumps(value)}" for name, value in shape.items())
    values["gpu_id"] = " --gpu-id 0" if gpu else ""
    return TEMPLATE.read_text(encoding="utf-8").format(**values)
