"""spaCy's console logger, with what is learned of the layers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import srsly
from spacy.language import Language
from spacy.training.loggers import console_logger_v3
from thinc.api import Model

from .cache import LayerCache
from .component import Elmo
from .mixes import Mix, mixes
from .shim import BiLMShim

LogStep = Callable[[dict[str, Any] | None], None]
Setup = Callable[[Language, IO[str], IO[str]], tuple[LogStep, Callable[[], None]]]


def console_logger(
    progress_bar: str | None,
    console_output: bool,
    output_file: str | Path | None,
    mixes_file: str | Path | None,
) -> Setup:
    """A logger for ``[training.logger]``; the arguments are those of `architectures`.

    Raises:
        ValueError: ``mixes_file`` exists.
    """
    mixes_path = None if mixes_file is None else Path(mixes_file)
    spacy_logger = console_logger_v3(progress_bar, console_output, output_file)

    def setup(
        nlp: Language, stdout: IO[str] = sys.stdout, stderr: IO[str] = sys.stderr
    ) -> tuple[LogStep, Callable[[], None]]:
        if mixes_path is not None:
            if mixes_path.exists():
                raise ValueError(
                    f"The logger's setting mixes_file names {mixes_path}, which exists. Move it "
                    f"away, or name another file."
                )
            mixes_path.parent.mkdir(parents=True, exist_ok=True)
        log, finish = spacy_logger(nlp, stdout, stderr)
        shims = bilm_shims(nlp)
        before = {"hits": 0, "misses": 0}

        def log_step(info: dict[str, Any] | None) -> None:
            caches = caches_of(shims)
            for cache in caches:
                cache.keep()  # components among the frozen ones do not know of the training
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
                "mixes": [mix._asdict() for mix in mixes(nlp) if _is_learned(nlp, mix)],
                "cache": new,
            }
            if console_output:
                for line in _lines(entry):
                    print(line, file=stdout, flush=True)
            if mixes_path is not None:
                with mixes_path.open("a", encoding="utf-8") as file:
                    file.write(srsly.json_dumps(entry) + "\n")

        def finalize() -> None:
            finish()
            for cache in caches_of(shims):
                cache.drop()
            for shim in shims:
                shim.let_learn(None)  # what gradual unfreezing has held back

        return log_step, finalize

    return setup


def bilm_shims(nlp: Language) -> list[BiLMShim]:
    """The biLMs in all components of a pipeline."""
    models = [getattr(pipe, "model", None) for _, pipe in nlp.components]
    nodes = [node for model in models if isinstance(model, Model) for node in model.walk()]
    return [shim for node in nodes for shim in node.shims if isinstance(shim, BiLMShim)]


def caches_of(shims: list[BiLMShim]) -> list[LayerCache]:
    """Those of frozen biLMs, as they are now: a biLM that is loaded gets a new one."""
    return list({id(s.cache): s.cache for s in shims if s.settings.frozen}.values())


def _is_learned(nlp: Language, mix: Mix) -> bool:
    """Not so a component's own mix if all that listen to it have theirs."""
    pipe = dict(nlp.components)[mix.component]
    return not isinstance(pipe, Elmo) or bool(pipe.tok2vec_listeners)


def _lines(entry: dict[str, Any]) -> list[str]:
    """Below the scores: a line for each mix, and the share that came from the cache."""
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
