"""One training, and what is measured of it on the dev set."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import resolve_dot_names
from thinc.api import Config

from ..util.files import atomic_directory, read_json, write_json, write_text
from .arms import Training
from .bootstrap import resample

RESULT, MODEL, PREDICTED = "result.json", "model-best", "dev.spacy"
MB = 1e6


def run(training: Training, gpu_id: int, on_step: Callable[[], Any]) -> dict[str, Any]:
    """Train a pipeline and measure it, unless that is done.

    Args:
        training: what is trained, and the folder for it: whole or not there.
        gpu_id: of a GPU that is in use, or -1.
        on_step: called before each step.

    Returns:
        What `measure` found, and the ``seconds`` of the training with its evaluations.
    """
    if training.folder.exists():
        return read_json(training.folder / RESULT)
    with atomic_directory(training.folder) as folder:
        start, log = time.perf_counter(), io.StringIO()
        nlp = init_nlp(training.config, use_gpu=gpu_id)
        update = nlp.update  # called once a step; what spaCy logs, it logs at evaluations alone

        def counted(*args: Any, **kwargs: Any) -> Any:
            on_step()
            return update(*args, **kwargs)

        nlp.update = counted  # type: ignore[method-assign]
        train(nlp, folder, use_gpu=gpu_id, stdout=log, stderr=log)
        seconds = time.perf_counter() - start
        shutil.rmtree(folder / "model-last")
        write_text(folder / "log.txt", log.getvalue())
        result = {"seconds": seconds, **measure(folder, training.config)}
        write_json(folder / RESULT, result)
    return result


def measure(folder: Path, config: Config) -> dict[str, Any]:
    """Let a trained pipeline predict the dev set, and keep that too.

    Returns:
        ``scores``, those that the config gives a weight, and ``draws`` of each (see `resample`);
        ``words_per_second``, the tokenizer left out, and ``mb`` on disk.
    """
    nlp = spacy.load(folder / MODEL)
    examples = read_examples(nlp, config)
    docs = [example.predicted for example in examples]
    list(nlp.pipe(doc.copy() for doc in docs[:8]))  # loads what is loaded at the first use
    start = time.perf_counter()
    docs = list(nlp.pipe(docs))
    seconds = time.perf_counter() - start
    for example, doc in zip(examples, docs, strict=True):
        example.predicted = doc
    DocBin(docs=docs).to_disk(folder / PREDICTED)
    found = Scorer(nlp).score(examples)
    weights = config.interpolate()["training"]["score_weights"]
    names = [n for n, weight in weights.items() if weight is not None]
    scores = {n: found[n] for n in names if isinstance(found.get(n), (int, float))}
    files = [file for file in (folder / MODEL).rglob("*") if file.is_file()]
    return {
        "scores": scores,
        "draws": {n: resample(n, examples, rescorer(nlp, n)).round(6).tolist() for n in scores},
        "words_per_second": sum(map(len, docs)) / seconds,
        "mb": sum(file.stat().st_size for file in files) / MB,
    }


def rescorer(nlp: Language, name: str) -> Callable[[list[Example]], float | None]:
    """Computes one score by the component that it is of."""
    pipes: list[Any] = [pipe for n, pipe in nlp.pipeline if name in nlp.get_pipe_meta(n).scores]
    scorer = next((pipe for pipe in pipes if hasattr(pipe, "score")), Scorer(nlp))
    return lambda examples: scorer.score(examples).get(name)


def read_examples(nlp: Language, config: Config) -> list[Example]:
    """The dev set, not predicted yet."""
    plain = config.interpolate()
    [dev] = resolve_dot_names(plain, [plain["training"]["dev_corpus"]])
    return list(dev(nlp))


def read_predicted(training: Training, nlp: Language) -> list[Example]:
    """The dev set as a trained pipeline has predicted it.

    Args:
        training: a complete one.
        nlp: whose tokenizer and vocabulary are used.
    """
    examples = read_examples(nlp, training.config)
    docs = DocBin().from_disk(training.folder / PREDICTED).get_docs(nlp.vocab)
    return [Example(doc, each.reference) for doc, each in zip(docs, examples, strict=True)]
