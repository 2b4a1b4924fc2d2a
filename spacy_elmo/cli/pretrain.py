"""``python -m spacy elmo pretrain``: text to a biLM."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer
from wasabi import msg


def pretrain_cli(
    # fmt: off
    ctx: typer.Context,  # for the settings of the config among the arguments
    config_path: Path = typer.Argument(..., help="Path to config file", metavar="CONFIG"),
    out: Path = typer.Argument(
        ..., help="Directory for models, checkpoint, config and log", metavar="OUT"
    ),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU ID or -1 for CPU"),
    start: str = typer.Option(
        None,
        "--from",
        help="Name, directory or zip of a biLM to start from, instead of random numbers",
        metavar="NAME",
    ),
    resume: bool = typer.Option(False, "--resume", help="Go on from the checkpoint in OUT"),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print nothing but errors"),
    # fmt: on
) -> None:
    """
    Train a biLM on sentence shards, as `elmo tokenize` writes them, or on any text for which the
    config names a reader under [corpora.train] and [corpora.dev].

    Settings of the config are overridden after CONFIG and OUT, for example
    `--paths.train ./shards --paths.dev ./dev --training.max_steps 5000`. Ctrl-C stops after the
    step under way; go on with `--resume`. With `--from`, a biLM goes on learning from another text
    (see project/configs/pretrain_adapt.cfg), its head too if it has one. OUT gets `model-best` and
    `model-last`, directories that the elmo component can take as its weights.
    """
    from ..pretraining.config_file import start_from
    from ..pretraining.run.checkpoint import CHECKPOINT
    from ..pretraining.run.distributed import speaks
    from ..pretraining.run.given import Given
    from ..pretraining.train import pretrain
    from .pretrain_config import read_spacy_config, resolve
    from .pretrain_logger import Follower
    from .vectors import read_vectors

    if str(config_path).startswith("--") or str(out).startswith("--"):
        msg.fail("Give CONFIG and OUT first, and the settings of the config after them.", exits=1)
    device = "cpu" if gpu_id < 0 else f"cuda:{gpu_id}"
    run = out if resume and (out / CHECKPOINT).exists() else None

    def given() -> Given:
        config = read_spacy_config(config_path, [*ctx.args, *start_from(start)], run)
        sources, logger = resolve(config)
        name, vectors = config.paths.vectors, None
        if name is not None and run is None and not name.endswith(".safetensors"):
            vectors = read_vectors(
                name, msg.warn if speaks() and not quiet else (lambda text: None)
            )
        follow = None if logger is None else partial(Follower, logger, config)
        return Given(config, sources, vectors, follow)

    try:
        progress = pretrain(given, out, device=device, resume=resume, quiet=quiet)
    except (ValueError, OSError) as error:
        msg.fail("Cannot pretrain", str(error), exits=1)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if progress.step < progress.n_steps:  # it was stopped
        raise typer.Exit(130)
    if speaks() and not quiet:
        msg.good(f"{progress.step:,} steps, {progress.words:,} words", str(out))
