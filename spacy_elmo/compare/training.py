"""Runs a training, and measures the trained pipeline on the dev set."""

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
    """Train a pipeline and measure it; read the result if an earlier run has done so.

    Args:
        training: the training, with the folder to write.
        gpu_id: ID of the GPU in use, or -1.
        on_step: called before each step.

    Returns:
        The result of `measure`, and the ``seconds`` of the training with its evaluations.

    Raises:
        ValueError: see `check_labels`.
    """
    if training.folder.exists():
        return read_json(training.folder / RESULT)
    with atomic_directory(training.folder) as folder:
        start, log = time.perf_counter(), io.StringIO()
        nlp = init_nlp(training.config, use_gpu=gpu_id)
        check_labels(nlp)
        update = nlp.update  # called once a step; spaCy's loggers are called at evaluations only

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


def check_labels(nlp: Language) -> None:
    """Raise a ValueError if a component has no labels. If it were the last to listen to a shared
    `tok2vec`, spaCy would not train that at all."""
    for name, pipe in nlp.pipeline:
        if getattr(pipe, "label_data", None) is not None and not getattr(pipe, "labels", True):
            raise ValueError(
                f"The training set has no labels for the component '{name}'. Leave it out of the "
                f"config."
            )


def measure(folder: Path, config: Config) -> dict[str, Any]:
    """Let a trained pipeline predict the dev set, and save the predicted Docs.

    Returns:
        ``scores`` that have a weight in the config; ``draws``, the results of `resample` for each;
        ``words_per_second``, without the tokenizer; and ``mb`` on disk.
    """
    nlp = spacy.load(folder / MODEL)
    examples = read_examples(nlp, config)
    docs = [example.predicted for example in examples]
    list(nlp.pipe(doc.copy() for doc in docs[:8]))  # the first use loads weights
    start = time.perf_counter()
    docs = list(nlp.pipe(docs))
    seconds = time.perf_counter() - start
    for example, doc in zip(examples, docs, strict=True):
        example.predicted = doc
    DocBin(docs=docs).to_disk(folder / PREDICTED)
    measured = Scorer(nlp).score(examples)
    weights = config.interpolate()["training"]["score_weights"]
    names = [n for n, weight in weights.items() if weight is not None]
    scores = {n: measured[n] for n in names if isinstance(measured.get(n), (int, float))}
    files = [file for file in (folder / MODEL).rglob("*") if file.is_file()]
    return {
        "scores": scores,
        "draws": {n: resample(n, examples, rescorer(nlp, n)).round(6).tolist() for n in scores},
        "words_per_second": sum(map(len, docs)) / seconds,
        "mb": sum(file.stat().st_size for file in files) / MB,
    }


def rescorer(nlp: Language, name: str) -> Callable[[list[Example]], float | None]:
    """A function that computes one score, by the component that defines it."""
    pipes: list[Any] = [pipe for n, pipe in nlp.pipeline if name in nlp.get_pipe_meta(n).scores]
    scorer = next((pipe for pipe in pipes if hasattr(pipe, "score")), Scorer(nlp))
    return lambda examples: scorer.score(examples).get(name)


def read_examples(nlp: Language, config: Config) -> list[Example]:
    """Read the dev set, without predictions."""
    plain = config.interpolate()
    [dev] = resolve_dot_names(plain, [plain["training"]["dev_corpus"]])
    return list(dev(nlp))


def read_predicted(training: Training, nlp: Language) -> list[Example]:
    """Read the dev set with the predictions that `measure` has saved.

    Args:
        training: a training that was run.
        nlp: a pipeline with the tokenizer and the vocabulary.
    """
    examples = read_examples(nlp, training.config)
    docs = DocBin().from_disk(training.folder / PREDICTED).get_docs(nlp.vocab)
    return [Example(doc, eg.reference) for doc, eg in zip(docs, examples, strict=True)]
