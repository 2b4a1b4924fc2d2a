"""``python -m spacy elmo plot-mix``: which layers each component of a pipeline uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options


def plot_mix_cli(
    pipeline: Annotated[str, typer.Argument(help="Name or directory of a spaCy pipeline with an elmo component", metavar="PIPELINE")],
    output: options.PictureFile = Path("mix.html"),
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Draw how each component of a pipeline mixes the layers of its biLM.

    Bars compare the layers of a mix, the heat map below them compares components. Layer 0 is the
    token layer, which knows nothing of context. With --json, the weights are printed too.
    """
    import spacy

    from ..pipeline.mixes import mixes
    from ..viz.mixes import draw_mixes
    from ..viz.picture import check_output

    with options.report_errors("Cannot draw the mixes", as_json=as_json):
        check_output(output)
        found = mixes(spacy.load(pipeline))
        draw_mixes(found, Path(pipeline).name).save(output)
    data = {"output": str(output), "mixes": [mix._asdict() for mix in found]}
    options.print_result("Drew the mixes", data, as_json)
