"""``python -m spacy elmo pretrain``: trains a biLM on raw text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import import_code, parse_config_overrides

from .options import OVERRIDES, Code, GpuId, Json, Quiet, app, print_result, report_errors


@app.command("pretrain", context_settings=OVERRIDES)
def pretrain_cli(
    ctx: typer.Context,  # has the overrides of the config
    config_path: Annotated[Path, typer.Argument(help="Path to config file", metavar="CONFIG")],
    out: Annotated[Path, typer.Argument(help="Directory for models, checkpoint, config and log", metavar="OUT")],
    gpu_id: GpuId = -1,
    start: Annotated[str | None, typer.Option("--from", help="Name or directory of a biLM to start from (default: random initialization)", metavar="NAME")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume from the checkpoint in OUT, or start from the beginning if there is none yet")] = False,
    minutes: Annotated[float | None, typer.Option("--minutes", help="Train for about N minutes; max_steps or max_epochs may end the run sooner", metavar="N")] = None,
    code: Code = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """
    Train a biLM on raw text.

    The text is a directory of sentence shards, as `elmo tokenize` writes it, or any text for which
    the config has a reader in [corpora.train] and [corpora.dev].

    Settings of the config can be given as options after CONFIG and OUT, for example
    `--paths.train ./shards --paths.dev ./dev --training.max_epochs 1`. Ctrl-C stops after the
    current step; `--resume` continues. `--from` continues the training of another biLM, and of its
    head if it has one, on this text (see project/configs/pretrain_adapt.cfg). The command writes
    `model-best` and `model-last` to OUT, which are weights for the elmo component.
    """
    from ..pretraining.config import read_config
    from ..pretraining.distributed import is_first_process
    from ..pretraining.train import pretrain

    try:
        with report_errors("Cannot pretrain", as_json=as_json):
            import_code(code)
            overrides = parse_config_overrides(ctx.args)
            if start is not None:
                overrides["paths.weights"] = start
            if minutes is not None:
                overrides["training.minutes"] = minutes
            device = "cpu" if gpu_id < 0 else f"cuda:{gpu_id}"
            config = read_config(config_path, overrides)
            progress = pretrain(config, out, device=device, resume=resume, quiet=quiet)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if not progress.is_finished:  # Ctrl-C has stopped it
        raise typer.Exit(130)
    if is_first_process():
        data = {"output": str(out), "steps": progress.step, "words": progress.words}
        text = f"{progress.step:,} steps, {progress.words:,} words"
        print_result(text, data, as_json, quiet)
