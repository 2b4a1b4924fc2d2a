"""Callbacks of spaCy's training: a logger that shows the mixes, gradual unfreezing."""

import io
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from spacy.language import Language
from spacy.training.loggers import console_logger_v3
from thinc.api import Model
from tqdm import tqdm
from wasabi import msg

from ..util.settings import Settings, at_least, one_of
from .bilm_layer import BiLMShim, LazyBiLM
from .component import Elmo
from .layer_cache import LayerCache
from .mixes import Mix, mixes
from .pipeline_parts import model_nodes

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP007, UP045

LogStep = Callable[[Optional[Dict[str, Any]]], None]
Setup = Callable[[Language, IO[str], IO[str]], Tuple[LogStep, Callable[[], None]]]


def ConsoleLogger(
    progress_bar: Union[bool, str, None] = None,
    console_output: bool = True,
    output_file: Union[str, Path, None] = None,
    mixes_file: Optional[str] = None,
) -> Setup:
    """``spacy-elmo.ConsoleLogger.v1``: `spacy.ConsoleLogger.v3`, and the mixes at each evaluation.

    What the encoding of ``stdout`` lacks is printed as escapes: a name does not end a training. At
    its end, the cached layers of frozen biLMs are dropped.

    Args:
        progress_bar, console_output, output_file: as spaCy's.
        mixes_file: a file for the mixes and the cache's hits, a line of JSON for each evaluation.
            The mixes are those of the step, not the averages that are saved. A file that exists is
            left as it is, as spaCy leaves ``output_file``.
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
        mixes_path = None if mixes_file is None else Path(mixes_file)
        if mixes_path is not None and mixes_path.exists():
            msg.warn(
                f"The mixes are not saved: the logger's setting mixes_file names {mixes_path}, "
                f"which exists. Move it away, or name another file."
            )
            mixes_path = None
        elif mixes_path is not None:
            mixes_path.parent.mkdir(parents=True, exist_ok=True)
        log, finish = spacy_logger(nlp, stdout, stderr)
        bilms = _bilms(pipe for _, pipe in nlp.components)
        before = {"hits": 0, "misses": 0}

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            caches = _caches(bilms)
            for cache in caches:
                cache.begin()  # frozen_components are not updated, so theirs would stay off
            log(info)
            if info is None:
                return
            total = {name: sum(getattr(c, name) for c in caches) for name in before}
            new = {name: max(0, total[name] - before[name]) for name in before}
            before.update(total)
            entry = {
                "epoch": info["epoch"],
                "step": info["step"],
                "score": float(info["score"]),
                "mixes": [mix._asdict() for mix in mixes(nlp) if _is_trained(nlp, mix)],
                "cache": new,
            }
            if console_output:
                for line in _lines(entry):
                    tqdm.write(line, file=stdout)  # around spaCy's bar
                stdout.flush()
            if mixes_path is not None:
                with mixes_path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")

        def finalize() -> None:
            finish()
            if isinstance(stdout, io.TextIOWrapper):
                stdout.reconfigure(errors=errors)
            for cache in _caches(bilms):
                cache.clear()
            for bilm in bilms:
                if bilm.is_loaded and not bilm.settings.frozen:
                    bilm.unfreeze_top(None)  # ends gradual unfreezing

        return log_step, finalize

    return setup


@dataclass(frozen=True)
class UnfreezingSettings(Settings):
    """The settings of `gradual_unfreezing`."""

    title = "spacy-elmo.gradual_unfreezing.v1: the setting"
    every: int = at_least(1)
    unit: str = one_of("epoch", "step")
    first: int = at_least(0, 0)


def gradual_unfreezing(
    component: str = "elmo", every: int = 1, unit: str = "epoch", first: int = 0
) -> Callable[[Language, Dict[str, Any]], None]:
    """``spacy-elmo.gradual_unfreezing.v1``: for ``[training.before_update]``.

    The biLM's parts are unfrozen one after another: the LSTM layers from the top, the token
    encoder last, so that gradients of a task that has hardly begun to be learned do not spoil the
    lower ones (Howard and Ruder 2018, §3.3). The component's model needs ``frozen = false``.

    Args:
        component: name of the component with the biLM.
        every: epochs or steps from one part to the next.
        unit: ``"epoch"`` or ``"step"``.
        first: parts that are trained from the beginning; with 0, only the tasks are.

    Raises:
        ValueError: a setting is out of range; or, in the training, there is no such component,
            or its biLM is frozen.
    """
    UnfreezingSettings(every, unit, first)

    def unfreeze(nlp: Language, progress: Dict[str, Any]) -> None:
        for bilm in _unfreezable(nlp, component):
            bilm.unfreeze_top(first + progress[unit] // every)

    return unfreeze


def _unfreezable(nlp: Language, component: str) -> List[LazyBiLM]:
    """The biLMs in a component that a training can unfreeze."""
    bilms, problem = _bilms([dict(nlp.components).get(component)]), ""
    if not bilms:
        problem = "is not there or has no biLM; set the callback's component."
    elif all(bilm.settings.frozen for bilm in bilms):
        problem = "has a frozen biLM; set frozen = false in its model, or remove the callback."
    elif component in nlp.config["training"].get("frozen_components", ()):
        problem = "is one of the frozen_components of the training; take it off them."
    if problem:
        raise ValueError(f"spacy-elmo.gradual_unfreezing.v1: the component '{component}' {problem}")
    return bilms


def _bilms(pipes: Iterable[Any]) -> List[LazyBiLM]:
    """The biLMs in components."""
    nodes = [node for pipe in pipes for node in model_nodes(pipe, Model)]
    return [shim.bilm for node in nodes for shim in node.shims if isinstance(shim, BiLMShim)]


def _caches(bilms: List[LazyBiLM]) -> List[LayerCache]:
    """The caches of frozen biLMs; a biLM that was loaded since has a new one."""
    return list({id(s.cache): s.cache for s in bilms if s.settings.frozen}.values())


def _is_trained(nlp: Language, mix: Mix) -> bool:
    """Return whether a listener trains a mix; an elmo component's own may have none."""
    pipe = dict(nlp.components)[mix.component]
    return not isinstance(pipe, Elmo) or bool(pipe.tok2vec_listeners)


def _lines(entry: Dict[str, Any]) -> List[str]:
    """Lines below the scores: one for each mix, and the cache's hit rate."""
    lines = []
    for mix in entry["mixes"]:
        name = f"{mix['component']} {mix['listener']}"
        weights = " ".join(f"{s:.3f}" for s in mix["weights"])
        lines.append(f"{'':13}{name}: s {weights}, γ {mix['gamma']:.3f}")
    n_sentences = sum(entry["cache"].values())
    if n_sentences:
        share = 100 * entry["cache"]["hits"] / n_sentences
        lines.append(f"{'':13}sentences from the cache: {share:.1f} % of {n_sentences}")
    return lines
