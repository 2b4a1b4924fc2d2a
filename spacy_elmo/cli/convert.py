"""``python -m spacy elmo convert``: weights from one layout to the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from ..util.settings import check_choice
from . import options
from .output_directory import output_directory

if TYPE_CHECKING:
    from ..weights.layout import Weights


def convert_cli(
    sources: options.WeightsIn,
    out: Annotated[Path, typer.Argument(help="Directory to write", metavar="OUT")],
    to: Annotated[str | None, typer.Option("--to", "-t", help="Layout to write: native or published (default: the other one than that of IN)")] = None,
    warm_text: options.WarmText = None,
    statistics: options.StatisticsText = None,
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
    weights.safetensors; a directory of ELMoForManyLangs is read, too. Published weights get a warm state, the state from which every sentence starts, computed from
    an English text; for another language give --warm-text. With --statistics, `similarity` in
    pipelines compares words and their contexts; without, it is the cosine of mean vectors. Weights in the published layout can be
    read by the archived ELMo implementations.
    """
    from ..util.files import atomic_directory
    from ..weights.find import find_weights
    from ..weights.many_langs import ManyLangsWeights, is_many_langs
    from ..weights.published.hdf5 import import_h5py
    from ..weights.published.options import to_options
    from .bundle import Bundle

    with options.report_errors("Cannot convert", as_json=as_json):
        many_langs = len(sources) == 1 and is_many_langs(Path(sources[0]))
        weights: Weights = (
            ManyLangsWeights(Path(sources[0])) if many_langs else find_weights(options.one(sources))
        )
        layout = to or ("published" if weights.layout == "native" else "native")
        check_choice("--to", layout, ("native", "published"))
        if layout == "published":
            to_options(weights.config())  # raises if that layout cannot describe the biLM
            if half or warm_text is not None:
                raise ValueError(
                    "The published layout has no --half and no --warm-text: drop them, or give --to "
                    "native."
                )
            import_h5py(str(out))
        path = output_directory(out, force, _own_names(out, weights))
        bundle = Bundle.read(weights, lang, vocab, no_head)
        if layout == "native":
            bundle.add_warm_state(warm_text)
        elif weights.has_warm_state():
            msg.warn(
                "The stored warm state is left out, because the published layout has no place for "
                "it. Readers of these weights compute their own, perhaps from another text."
            )
        bundle.add_statistics(statistics)
        with atomic_directory(path) as directory:
            bundle.save(directory, layout, half)
    n_parameters = sum(p.numel() for p in bundle.model.parameters())
    text = f"Wrote {n_parameters / 1e6:.1f} M parameters in the {layout} layout"
    data = {"output": str(out), "layout": layout, "parameters": n_parameters}
    options.print_result(text, data, as_json)


def _own_names(out: Path, weights: Weights) -> set[str]:
    """The names that a directory of weights may have; none if it contains no weights."""
    from ..weights.layout import CONFIG, FILES, MODEL, OPTIONS, WEIGHTS

    pairs = ((CONFIG, WEIGHTS), (OPTIONS, MODEL))
    if not any(all((out / name).is_file() for name in pair) for pair in pairs):
        return set()
    return {*FILES, *(file.name for file in weights.extra_files())}
