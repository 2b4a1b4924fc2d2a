"""``python -m spacy elmo compare``: what ELMo gains and costs on your own data."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from wasabi import msg

from . import options

if TYPE_CHECKING:
    from thinc.api import Config

    from ..compare.arms import Training

WIDTH = 96  # characters of a sentence in the output
NAME = 40  # characters of a biLM's path in a picture
VERBS = {"mended": ("mends", "without"), "broken": ("breaks", "with")}


@options.app.command("compare", context_settings=options.OVERRIDES)
def compare_cli(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of spaCy without ELMo, or the directory of a trained pipeline", metavar="CONFIG")],
    weights: Annotated[list[str] | None, typer.Option("--weights", "-w", help="Name or directory of a biLM; repeat the option to compare several (default: en_sm)")] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of trainings of each config, with the seeds 0, 1, …")] = 3,
    sizes: Annotated[str, typer.Option("--sizes", help="Numbers of training Docs, such as 100,500,all: a sample of the training set for each seed")] = "all",
    keep: Annotated[Path, typer.Option("--keep", help="Directory for the trained pipelines and what was measured; what it has already is not trained again", file_okay=False)] = Path("comparison"),
    output: options.Picture = None,
    code: options.Code = None,
    gpu_id: options.GpuId = -1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """
    Train a config without and with ELMo, and compare both on the dev set.

    Give the data as to `spacy train`: `--paths.train train.spacy --paths.dev dev.spacy`. Other
    settings of the config can be given as options too. ELMo is added as by `elmo add`; both sides
    have the same seeds, steps, patience and optimizer, that of `elmo add`. All scores are on the
    dev set, which also chooses the best step of each training.

    The 95% interval is that of a paired bootstrap: up to 1,000 draws of dev Docs and seeds, with
    replacement. If it includes zero, the difference may be chance. `errors` is the change in the
    number of errors. The sentences are those that every seed of one side gets right and every seed
    of the other side gets wrong. Compare times only if nothing else ran on the machine.

    Ctrl-C stops; the same command goes on with the training that was stopped.
    """
    from ..compare.arms import make_arms
    from ..util.optional_imports import require_extra
    from ..viz.figure import check_output

    try:
        with options.report_errors("Cannot compare", as_json=as_json):
            check_output(output)
            if output is not None:
                require_extra("matplotlib", "viz", "pictures are drawn by matplotlib", str(output))
            chosen = parse_sizes(sizes)
            arms = make_arms(options.read_config(ctx, config, code), weights or ["en_sm"])
            comparisons = train_all(arms, chosen, seeds, keep, gpu_id, quiet)
            if output is not None:
                draw(comparisons, output)
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on from here.", err=True)
        raise typer.Exit(130) from None
    if as_json:
        written = {} if output is None else {"output": str(output)}
        options.print_json(
            written | {"keep": str(keep), "seeds": seeds, "comparisons": comparisons}
        )
        return
    for comparison in comparisons:
        print_comparison(comparison, seeds)
    if not quiet:
        msg.text(f"The trained pipelines are in {keep}.")
        if output is not None:
            msg.good("Drew the scores", str(output))


def parse_sizes(sizes: str) -> list[int]:
    """Parse numbers of Docs, such as ``100,500,all``; 0 stands for all.

    Raises:
        ValueError: one of them is not a number.
    """
    parts = [part.strip() for part in sizes.split(",")]
    if not all(part == "all" or (part.isdecimal() and int(part)) for part in parts):
        raise ValueError(f"--sizes is '{sizes}'. Give numbers of Docs, such as 100,500,all.")
    return sorted({0 if part == "all" else int(part) for part in parts}, key=lambda n: (not n, n))


def train_all(
    arms: dict[str, Config], sizes: list[int], n_seeds: int, keep: Path, gpu_id: int, quiet: bool
) -> list[dict[str, Any]]:
    """Train each config that has no results yet, and compare each biLM with the config without
    ELMo."""
    import spacy

    from ..compare.arms import WITHOUT, plan
    from ..compare.report import compare
    from ..compare.training import run
    from ..util.progress import ProgressBar

    if gpu_id >= 0:
        spacy.require_gpu(gpu_id)
    trainings = list(plan(arms, sizes, n_seeds, keep.resolve()))
    steps = arms[WITHOUT].interpolate()["training"]["max_steps"]  # 0: as many as patience allows
    done = steps * sum(training.folder.exists() for training in trainings)
    results = []
    with ProgressBar("steps", steps * len(trainings) or None, done, quiet) as bar:
        for number, training in enumerate(trainings, 1):
            is_done, before = training.folder.exists(), bar.n
            if not is_done:
                bar.set_postfix_str(f"{number} of {len(trainings)}: {training}")
            results.append((training, run(training, gpu_id, bar.update)))
            if steps and not is_done:
                bar.update(before + steps - bar.n)  # counts the steps that patience has saved

    def of(arm: str, size: int) -> list[tuple[Training, dict[str, Any]]]:
        return [(t, result) for t, result in results if (t.arm, t.size) == (arm, size)]

    pairs = dict.fromkeys((t.size, t.arm) for t in trainings if t.arm != WITHOUT)
    return [compare(of(WITHOUT, size), of(arm, size)) for size, arm in pairs]


def print_comparison(comparison: dict[str, Any], n_seeds: int) -> None:
    """Print tables of scores and costs, examples, and the verdict."""
    from ..viz.figure import cut

    docs = "" if comparison["docs"] is None else f", {comparison['docs']:,} training Docs"
    msg.divider(f"Without ELMo, and with {comparison['weights']}{docs}")
    rows = [
        (
            f"dev {name}", f"{100 * score['without']:.2f}", f"{100 * score['with']:.2f}",
            f"{100 * score['difference']:+.2f}",
            "{:+.2f} to {:+.2f}".format(*(100 * end for end in score["interval"])),
            "–" if score["error_reduction"] is None else f"{0 - score['error_reduction']:+.0%}",
        )
        for name, score in comparison["scores"].items()
    ]  # fmt: skip
    seeds = f"mean of {n_seeds} seeds" if n_seeds > 1 else "one seed"
    header = (seeds, "without", "with", "difference", "95% interval", "errors")
    msg.table(rows, header=header, divider=True, aligns=["l", *"rrrrr"])
    seconds, speeds, sizes = (cost.values() for cost in comparison["costs"].values())
    costs = [
        ("a training takes", *(f"{s / 60:.1f} min" if s > 100 else f"{s:.0f} s" for s in seconds)),
        ("words a second, dev", *(f"{speed:,.0f}" for speed in speeds)),
        ("MB on disk", *(f"{size:.1f}" for size in sizes)),
    ]
    msg.table(costs, header=("cost", "without", "with"), divider=True, aligns=["l", *"rr"])
    for kind, changes in comparison["examples"].items():
        for change, (verb, arm) in VERBS.items():
            print(f"ELMo {verb} {changes[change]['count']:,} dev {kind} (by every seed)")
            for sentence in changes[change]["sentences"]:
                print(f"  {cut(sentence['text'], WIDTH)}")
                print(f"      {sentence['right']} ({arm} ELMo: {sentence['wrong']})")
            print()
    (msg.good if "ELMo helps here" in comparison["verdict"] else msg.warn)(comparison["verdict"])


def draw(comparisons: list[dict[str, Any]], output: Path) -> None:
    """Draw bars for each score, or curves if there are several sizes."""
    from ..viz.scores import draw_bars, draw_curves

    panels: dict[str, dict[str, dict[float, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    for comparison in comparisons:
        names = {"without": "without ELMo", "with": comparison["weights"][-NAME:]}
        for score, values in comparison["scores"].items():
            for arm, name in names.items():
                seeds = [100 * value for value in values["seeds"][arm]]
                panels[score][name][comparison["docs"] or 0] = seeds
    title = "Scores on the dev set"
    if len({comparison["docs"] for comparison in comparisons}) > 1:
        draw_curves(panels, title, "training Docs", output)
    else:
        bars = {s: {m: [*by.values()].pop() for m, by in p.items()} for s, p in panels.items()}
        draw_bars(bars, title, output)
