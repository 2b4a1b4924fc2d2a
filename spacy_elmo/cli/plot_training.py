"""``python -m spacy elmo plot-training``: the curves of pretraining runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options


def plot_training_cli(
    out: Annotated[list[Path], typer.Argument(help="Directory of a run of `elmo pretrain`, or its log; several are compared", metavar="OUT...")],
    output: Annotated[Path | None, typer.Option("--output", "-o", "--file", "-f", help="File to write: .html, .svg, .png, .pdf or .jpg; needs the extra viz (default: a .png beside the first log)", dir_okay=False)] = None,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Draw the curves of pretraining runs.

    These are the loss, the held-out perplexity and the learning rate by the words read. A run need
    not have finished. Several runs share the axes, with a line for each.
    """
    from ..pretraining.run.log import find_log
    from ..viz.picture import check_output
    from ..viz.training import draw_training

    with options.report_errors("Cannot draw the training", as_json=as_json):
        picture = draw_training(out)
        file = check_output(output or find_log(out[0]).with_suffix(".png"))
        picture.save(file)
    options.print_result("Drew the training", {"output": str(file)}, as_json)
