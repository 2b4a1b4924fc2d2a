"""The curves of pretraining runs, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..pretraining.log import find_log, read_log
from .figure import cut_start, in_style, new_figure, save_figure

MOST_MARKS = 24  # on a line
NAME_CHARACTERS = 24
MOST = 1e30  # can be drawn, also on a logarithmic axis

Curve = list[tuple[int, float]]  # words read, and a value


@in_style()
def draw_training(
    runs: str | Path | Sequence[str | Path], *, output: str | Path | None = None
) -> Any:
    """Draw loss, held-out perplexity and learning rate of pretraining runs, by the words read.

    Args:
        runs: the directory of a run of ``elmo pretrain``, or its log, or several to compare; they
            need not have finished.
        output: a file to write, too.

    Returns:
        A figure of matplotlib.

    Raises:
        ValueError: there is no log, or it is damaged or has nothing to draw.
    """
    from matplotlib.ticker import EngFormatter, LogFormatter

    runs = [runs] if isinstance(runs, (str, Path)) else runs
    if not runs:
        raise ValueError("There is no run to draw: give the directory of one.")
    figure, panels = new_figure("Pretraining", 7, nrows=3, sharex=True, height_ratios=[3, 3, 1.5])
    loss, perplexity, rate = panels
    for run in runs:
        curves = read_curves(Path(run))
        name = describe(str(Path(run).resolve()), curves["mean"])
        drawn = [(loss, "loss", name), (perplexity, "mean", name), (rate, "lr", name)]
        if len(runs) == 1:
            drawn += [(perplexity, kind, kind) for kind in ("forward", "backward")]
        for panel, kind, label in drawn:
            words, values = zip(*curves[kind], strict=True) if curves[kind] else ((), ())
            panel.plot(words, values, label=label, markevery=len(words) // MOST_MARKS + 1)
            panel.grid(True, axis="y")
    loss.set_title("training loss (nats)")
    perplexity.set(title="held-out perplexity", yscale="log")
    perplexity.yaxis.set_major_formatter(LogFormatter())
    perplexity.yaxis.set_minor_formatter(LogFormatter())  # where there is room
    rate.set(title="learning rate", xlabel="words read", xlim=(0, None))
    rate.xaxis.set_major_formatter(EngFormatter(sep=" "))
    figure.legend(handles=perplexity.get_lines(), loc="outside lower left", frameon=False)
    return save_figure(figure, output)


def describe(name: str, means: Curve) -> str:
    """The best perplexity of a run, and the end of its path, which tells runs apart."""
    name = cut_start(name, NAME_CHARACTERS)
    if not means:
        return f"no perplexity yet: {name}"
    words, best = min(means, key=lambda point: point[1])
    return f"best {best:,.1f} after {words:,} words: {name}"


def read_curves(run: Path) -> dict[str, Curve]:
    """What can be drawn of a run's log, by kind.

    The final models' entries have no words: they are evaluated on the whole text, not on a sample.

    Raises:
        ValueError: see `draw_training`.
    """
    log = find_log(run)
    if not log.is_file():
        raise ValueError(
            f"There is no log '{log}'; give the directory of a run of `python -m spacy elmo "
            f"pretrain`."
        )
    curves: dict[str, Curve] = {n: [] for n in ("loss", "mean", "forward", "backward", "lr")}
    for entry in read_log(log):
        for kind, curve in curves.items():
            value = entry.get(kind)
            if "words" in entry and isinstance(value, int | float) and 0 <= value <= MOST:
                curve.append((entry["words"], value))
    if not curves["loss"] + curves["mean"]:
        raise ValueError(f"The log '{log}' has no losses yet; wait until the run has logged one.")
    return curves
