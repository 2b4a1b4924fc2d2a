"""``python -m spacy elmo convert``: weights from one layout to the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from ..util.settings import check_choice
from . import options
from .output_directory import output_directory, split_paths

if TYPE_CHECKING:
    from ..weights.layout import Weights

LAYOUTS = ("native", "published")


def convert_cli(
    paths: Annotated[list[str], typer.Argument(help="Name, directory or zip of weights, or two files (options.json and HDF5), then the directory to write", metavar="IN... OUT")],
    to: Annotated[str | None, typer.Option("--to", "-t", help="Layout to write: native or published (default: the other one than that of IN)")] = None,
    warm_text: options.WarmText = None,
    statistics: options.StatisticsText = None,
    subwords: Annotated[Path | None, typer.Option("--subwords", help="Vectors of n-grams that floret has trained (.floret), to store beside the weights", exists=True, dir_okay=False)] = None,
    lang: options.WeightsLang = None,
    vocab: options.HeadVocab = None,
    half: Annotated[bool, typer.Option("--half", help="Store the weights in half precision (native layout only)")] = False,
    no_head: options.NoHead = False,
    force: Annotated[bool, typer.Option("--force", "-F", help="Replace the weights at OUT; any other directory is left alone")] = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Convert weights to our layout or to the published one.

    The published layout is an options.json with an HDF5 file, our own a config.json with a
    weights.safetensors. Published weights get a warm state, the state from which every sentence starts, computed from
    an English text; for another language give --warm-text. With --statistics, `similarity` in
    pipelines compares words and their contexts; without, it is the cosine of mean vectors. Weights in the published layout can be
    read by the archived ELMo implementations.
    """
    from ..util.files import atomic_directory
    from ..weights.find import find_weights
    from ..weights.many_langs import ManyLangsWeights, is_many_langs
    from ..weights.published.hdf5 import import_h5py
    from ..weights.subwords import Subwords
    from .bundle import Bundle

    with options.report_errors("Cannot convert", as_json=as_json):
        setting, out = split_paths(paths)
        if isinstance(setting, str) and is_many_langs(Path(setting)):
            weights: Weights = ManyLangsWeights(Path(setting))
        else:
            weights = find_weights(setting)
        layout = _layout(to, weights, half, warm_text)
        if out.suffix == ".zip":
            raise ValueError(f"'{out}' is not a directory; weights are written to one.")
        if layout == "published":
            import_h5py(str(out))
        path = output_directory(out, force, lambda names: _foreign(names, weights))
        bundle = Bundle.read(weights, lang, vocab, no_head)
        if layout == "native":
            bundle.add_warm_state(warm_text)
        elif weights.has_warm_state():
            msg.warn(
                "The stored warm state is left out, because the published layout has no place for "
                "it. Readers of these weights compute their own, perhaps from another text."
            )
        bundle.add_statistics(statistics)
        if subwords is not None:
            bundle.subwords = Subwords.from_floret(subwords)
        with atomic_directory(path) as directory:
            bundle.save(directory, layout, half)
    n_parameters = sum(p.numel() for p in bundle.model.parameters())
    text = f"Wrote {n_parameters / 1e6:.1f} M parameters in the {layout} layout"
    data = {"output": str(out), "layout": layout, "parameters": n_parameters}
    options.print_result(text, data, as_json)


def _layout(to: str | None, weights: Weights, half: bool, warm_text: Path | None) -> str:
    """The layout to write."""
    layout = to or ("published" if weights.layout == "native" else "native")
    check_choice("--to", layout, LAYOUTS)
    if layout == "published":
        from ..weights.published.options import to_options

        to_options(weights.config())  # raises if that layout cannot describe the biLM
        own = {"--warm-text": warm_text, "--half": half}
        if given := [option for option, value in own.items() if value]:
            raise ValueError(f"The published layout does not support {given[0]}. Leave it out.")
    return layout


def _foreign(names: set[str], weights: Weights) -> set[str]:
    """The names in a directory that `convert` would not write; all if it contains no weights."""
    from ..weights.layout import CONFIG, FILES, MODEL, OPTIONS, WEIGHTS

    if not any(layout <= names for layout in ({CONFIG, WEIGHTS}, {OPTIONS, MODEL})):
        return names
    return names - {*FILES, *(file.name for file in weights.extra_files())}
