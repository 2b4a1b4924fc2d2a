"""Evaluations of a run on its held-out text."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ..bilm.model import BiLM
from ..lm.encoded_sentences import EncodedSentences
from ..lm.head import load_head
from ..lm.perplexity import Perplexity, evaluate
from ..lm.softmax import SoftmaxHead
from ..util.files import write_bytes
from ..weights.find import load_bilm
from ..weights.layout import STATISTICS
from ..weights.statistics import compute_statistics
from .checkpoint import State
from .device import matmul_precision
from .log import Log
from .prepare import BEST, LAST, Run


@matmul_precision("highest")  # whatever the precision in training: evaluations are compared
def measure(
    model: BiLM, head: SoftmaxHead, text: EncodedSentences, max_words: int = 0
) -> Perplexity:
    """The perplexity on a text, or on a fixed sample of about this many words; 0 for all."""
    return evaluate(model, head, text, max_words=max_words)


def describe(result: Perplexity) -> str:
    """A perplexity in one line."""
    return (
        f"perplexity {result.mean:.2f} (forward {result.forward:.2f}, backward "
        f"{result.backward:.2f}), {result.n_words:,} words, {result.unknown_rate:.2%} <UNK>"
    )


@matmul_precision("highest")
def write_results(run: Run, state: State, log: Log) -> None:
    """Evaluate the finished models, as they are on disk, and write statistics beside them.

    The whole held-out text is read. If it has only one distinct word, there are no statistics.
    """
    for path in filter(Path.exists, (run.out / BEST, run.out / LAST)):
        model, (head, _) = load_bilm(path).to(state.group.device), load_head(path)
        result = measure(model, head.to(state.group.device), run.dev)
        if statistics := compute_statistics(model, run.dev):
            write_bytes(path / STATISTICS, statistics.to_bytes())
        log.write(step=state.progress.step, model=path.name, **asdict(result), mean=result.mean)
        run.notify(f"{path.name}: {describe(result)}")
