"""The scores of all pipelines on the test sets."""

from __future__ import annotations

from pathlib import Path

import typer
from datasets import TASKS, present
from spacy.cli.evaluate import evaluate
from train import ARMS
from wasabi import msg


def main(
    run: Path, tasks: str = ",".join(TASKS), gpu_id: int = -1, gold_preproc: bool = False
) -> None:
    """Write RUN/metrics/TASK-elmo.json and RUN/metrics/TASK-plain.json."""
    (run / "metrics").mkdir(exist_ok=True)
    for task in present(run, tasks):
        for arm in ARMS:
            model = run / "models" / f"{task}-{arm}" / "model-best"
            test = run / "corpus" / TASKS[task] / "test.spacy"
            output = run / "metrics" / f"{task}-{arm}.json"
            evaluate(
                str(model), test, output, use_gpu=gpu_id, gold_preproc=gold_preproc, silent=True
            )
            msg.good(f"Evaluated {task}-{arm}", str(output))


if __name__ == "__main__":
    typer.run(main)
