"""``python -m spacy elmo plot-training``: the curves of a pretraining run."""

from __future__ import annotations

from pathlib import Path

import typer
from wasabi import msg


def plot_training_cli(
    # fmt: off
    out: Path = typer.Argument(
        ..., help="Directory of a run of `elmo pretrain`, or its log", metavar="OUT"
    ),
    file: Path | None = typer.Option(
        None,
        "--file",
        "-f",
        help="Image to write; its suffix decides the format (.png, .svg, .pdf). Default: a .png beside the log",
        dir_okay=False,
    ),
    # fmt: on
) -> None:
    """
    Draw a run's loss, held-out perplexity and learning rate over its steps.

    The run may still be going. Needs matplotlib: pip install 'spacy-elmo[viz]'.
    """
    from ..pretraining.run.log import LOG
    from ..pretraining.run.plot import plot_log

    log = out if out.is_file() else out / LOG
    file = file or log.with_suffix(".png")
    try:
        plot_log(log, file)
    except (ValueError, OSError) as error:
        msg.fail("Cannot plot the training", str(error), exits=1)
    msg.good("Drew the training", str(file))
