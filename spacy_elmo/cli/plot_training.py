"""``python -m spacy elmo plot-training``: the curves of a pretraining run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from .options import report_errors


def plot_training_cli(
    out: Annotated[Path, typer.Argument(help="Directory of a run of `elmo pretrain`, or its log", metavar="OUT")],
    output: Annotated[Path | None, typer.Option("--output", "-o", "--file", "-f", help="Image to write; its suffix decides the format: .png, .svg or .pdf (default: a .png beside the log)", dir_okay=False)] = None,
) -> None:  # fmt: skip
    """
    Plot the curves of a pretraining run.

    These are its loss, held-out perplexity and learning rate by step. The run need not have finished. Needs matplotlib: pip install 'spacy-elmo[viz]'.
    """
    from ..pretraining.run.log import LOG
    from ..pretraining.run.plot import plot_log

    log = out if out.is_file() else out / LOG
    file = output or log.with_suffix(".png")
    with report_errors("Cannot plot the training"):
        plot_log(log, file)
    msg.good("Drew the training", str(file))
