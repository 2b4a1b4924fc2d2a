"""``python -m spacy elmo plot-mix``: which layers each component of a pipeline uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from .options import PictureFile, report_errors


def plot_mix_cli(
    pipeline: Annotated[str, typer.Argument(help="Name or directory of a spaCy pipeline with an elmo component", metavar="PIPELINE")],
    output: PictureFile = Path("mix.html"),
) -> None:  # fmt: skip
    """
    Draw how each component of a pipeline mixes the layers of its biLM.

    Bars compare the layers of a mix, the heat map below them compares components. Layer 0 is the
    token layer, which knows nothing of context.
    """
    import spacy

    from ..pipeline.scalar_mix import mixes
    from ..viz.mixes import draw_mixes
    from ..viz.picture import check_output

    with report_errors("Cannot draw the mixes"):
        check_output(output)
        picture = draw_mixes(mixes(spacy.load(pipeline)), Path(pipeline).name)
        picture.save(output)
    msg.good("Drew the mixes", str(output))
