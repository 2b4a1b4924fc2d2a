"""A logger of spaCy's training that shows the mixes."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from spacy.language import Language
from spacy.training.loggers import console_logger_v3
from thinc.api import Model
from tqdm import tqdm

from .bilm_layer import BiLMShim, LazyBiLM
from .component import Elmo
from .layer_cache import LayerCache
from .mixes import mixes, model_nodes

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP007, UP045

LogStep = Callable[[Optional[Dict[str, Any]]], None]
Setup = Callable[[Language, IO[str], IO[str]], Tuple[LogStep, Callable[[], None]]]


def ConsoleLogger(
    progress_bar: Union[bool, str, None] = None,
    console_output: bool = True,
    output_file: Union[str, Path, None] = None,
) -> Setup:
    """``spacy-elmo.ConsoleLogger.v1``: `spacy.ConsoleLogger.v3`, and the mixes at each evaluation.

    What the encoding of ``stdout`` lacks is printed as escapes: a name does not end a training. At
    its end, the cached layers of frozen biLMs are dropped.

    Args:
        progress_bar, console_output, output_file: as spaCy's.
    """
    if isinstance(progress_bar, bool):  # as spaCy's v1 and v2 have it
        progress_bar = "eval" if progress_bar else None
    spacy_logger = console_logger_v3(progress_bar, console_output, output_file)

    def setup(
        nlp: Language, stdout: IO[str] = sys.stdout, stderr: IO[str] = sys.stderr
    ) -> Tuple[LogStep, Callable[[], None]]:
        errors = getattr(stdout, "errors", None)
        if isinstance(stdout, io.TextIOWrapper):
            stdout.reconfigure(errors="backslashreplace")
        log, finish = spacy_logger(nlp, stdout, stderr)
        bilms = _bilms(pipe for _, pipe in nlp.components)

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            caches = _caches(bilms)
            for cache in caches:
                cache.begin()  # frozen_components are not updated, so theirs would stay off
            log(info)
            if info is not None and console_output:
                for line in _lines(nlp, caches):
                    tqdm.write(f"{'':13}{line}", file=stdout)  # around spaCy's bar
                stdout.flush()

        def finalize() -> None:
            finish()
            if isinstance(stdout, io.TextIOWrapper):
                stdout.reconfigure(errors=errors)
            for cache in _caches(bilms):
                cache.clear()

        return log_step, finalize

    return setup


def _lines(nlp: Language, caches: List[LayerCache]) -> Iterator[str]:
    """Lines below the scores: one for each mix, and the caches' share of hits."""
    for mix in mixes(nlp):
        pipe = dict(nlp.components)[mix.component]
        if isinstance(pipe, Elmo) and not pipe.tok2vec_listeners:
            continue  # nobody trains it
        weights = " ".join(f"{s:.3f}" for s in mix.weights)
        yield f"{mix.component} {mix.listener}: s {weights}, γ {mix.gamma:.3f}"
    hits, misses = (sum(getattr(cache, n) for cache in caches) for n in ("hits", "misses"))
    if hits + misses:
        yield f"sentences from the cache so far: {hits / (hits + misses):.1%} of {hits + misses}"


def _bilms(pipes: Iterable[Any]) -> List[LazyBiLM]:
    """The biLMs in components."""
    nodes = [node for pipe in pipes for node in model_nodes(pipe, Model)]
    return [shim.bilm for node in nodes for shim in node.shims if isinstance(shim, BiLMShim)]


def _caches(bilms: List[LazyBiLM]) -> List[LayerCache]:
    """The caches of frozen biLMs; a biLM that was loaded since has a new one."""
    return list({id(s.cache): s.cache for s in bilms if s.settings.frozen}.values())
