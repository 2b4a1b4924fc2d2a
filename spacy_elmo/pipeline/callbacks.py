"""Callbacks of spaCy's training: a logger that shows the mixes, gradual unfreezing."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Dict, List, Literal, Optional, Tuple, Union  # noqa: UP035

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


def gradual_unfreezing(
    component: str = "elmo",
    every: int = 1,
    unit: Literal["epoch", "step"] = "epoch",
    first: int = 0,
) -> Callable[[Language, Dict[str, Any]], None]:
    """``spacy-elmo.gradual_unfreezing.v1``: for ``[training.before_update]``.

    The biLM's parts are unfrozen one after another: the LSTM layers from the top, the token
    encoder last, so that gradients of a task that has hardly begun to be learned do not spoil the
    lower ones (Howard and Ruder 2018, §3.3). The component's model needs ``frozen = false``. What
    is frozen at the end of a training stays so until the component is initialized or loaded again.

    Args:
        component: name of the component with the biLM.
        every: epochs or steps from one part to the next.
        unit: ``"epoch"`` or ``"step"``.
        first: parts that are trained from the beginning; with 0, only the tasks are.

    Raises:
        ValueError: a number is out of range; or, in the training, the component has no biLM that
            is trained.
    """
    if every < 1 or first < 0:
        raise ValueError(
            f"spacy-elmo.gradual_unfreezing.v1: every = {every} must be 1 or more, first = {first} "
            f"0 or more."
        )

    def unfreeze(nlp: Language, progress: Dict[str, Any]) -> None:
        bilms = _bilms([dict(nlp.components).get(component)])
        is_frozen = component in nlp.config["training"].get("frozen_components", ())
        if is_frozen or all(bilm.settings.frozen for bilm in bilms):
            raise ValueError(
                f"spacy-elmo.gradual_unfreezing.v1: the component '{component}' has no biLM that "
                f"is trained. Set the callback's component, frozen = false in that one's model, "
                f"and take it off the frozen_components."
            )
        for bilm in bilms:
            bilm.unfreeze_top(first + progress[unit] // every)

    return unfreeze


def _bilms(pipes: Iterable[Any]) -> List[LazyBiLM]:
    """The biLMs in components."""
    nodes = [node for pipe in pipes for node in model_nodes(pipe, Model)]
    return [shim.bilm for node in nodes for shim in node.shims if isinstance(shim, BiLMShim)]


def _caches(bilms: List[LazyBiLM]) -> List[LayerCache]:
    """The caches of frozen biLMs; a biLM that was loaded since has a new one."""
    return list({id(s.cache): s.cache for s in bilms if s.settings.frozen}.values())
