"""``python -m spacy elmo plot-training`` and ``plot-mix``: draw pictures of runs and pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from . import options


@options.app.command("plot-training")
def plot_training_cli(
    out: Annotated[list[Path], typer.Argument(help="Directory of a run of `elmo pretrain`, or its log; several are compared", metavar="OUT...")],
    output: options.Picture = Path("training.png"),
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Draw the curves of pretraining runs.

    The picture shows the loss, the held-out perplexity and the learning rate over the words read.
    A run need not have finished. Several runs share the axes, with a line for each.
    """
    from ..viz import draw_training

    with options.report_errors("Cannot draw the training", as_json=as_json):
        draw_training(out, output=output)
    options.print_result("Drew the training", {"output": str(output)}, as_json)


@options.app.command("plot-mix")
def plot_mix_cli(
    pipeline: Annotated[str, typer.Argument(help="Name or directory of a spaCy pipeline with an elmo component", metavar="PIPELINE")],
    output: options.Picture = Path("mix.svg"),
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Draw how each component of a pipeline mixes the layers of its biLM.

    The picture is a heat map with a row for each mix and a column for each layer. Layer 0 is the
    token layer, which does not see the context. Mixes that nothing has trained are left out. --json
    prints the weights of all mixes too.
    """
    import spacy

    from ..pipeline.mixes import mixes
    from ..viz import draw_mixes
    from ..viz.figure import check_output
    from ..weights.find import warn_of_path

    with options.report_errors("Cannot draw the mixes", as_json=as_json):
        check_output(output)
        nlp = spacy.load(pipeline)
        if nlp.path is not None:
            warn_of_path(pipeline, nlp.path)
        all_mixes = mixes(nlp)
        draw_mixes(all_mixes, title=f"Mixes of “{Path(pipeline).name}”", output=output)
    if left_out := [mix.component for mix in all_mixes if not mix.is_trained and not as_json]:
        msg.info(f"Left out, because nothing has trained it: the mix of {', '.join(left_out)}")
    data = {"output": str(output), "mixes": [mix._asdict() for mix in all_mixes]}
    options.print_result("Drew the mixes", data, as_json)
