"""The trained tasks in one pipeline, in which the biLM runs once for all of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import spacy
import typer
from datasets import TASKS, present
from wasabi import msg

from spacy_elmo.text.readers import blank


def main(
    run: Path,
    tasks: str = ",".join(TASKS),
    lang: str = "en",
    tokenizer: str = "spacy.Tokenizer.v1",
) -> None:
    """Write RUN/pipeline."""
    nlp = blank(lang, tokenizer)
    weights = (run / "bilm.txt").read_text(encoding="utf-8").strip()
    nlp.add_pipe("elmo", config={"vectors": "elmo", "model": {"weights": weights}})
    for task in present(run, tasks):
        source = spacy.load(run / "models" / f"{task}-elmo" / "model-best")
        if "tok2vec" in source.pipe_names:  # what the task has learned from, and no other does
            has_mix = "embed" in source.config["components"][task]["model"]["tok2vec"]
            path = "model.tok2vec.embed" if has_mix else "model.tok2vec"
            source.replace_listeners("tok2vec", task, [path])
        nlp.add_pipe(task, source=source)
    # The layers are of use to the tasks alone; ELMo's vectors stay.
    nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo_layers": None}})
    shutil.rmtree(run / "pipeline", ignore_errors=True)  # of other tasks, perhaps
    nlp.to_disk(run / "pipeline")
    msg.good(" → ".join(nlp.pipe_names), str(run / "pipeline"))


if __name__ == "__main__":
    typer.run(main)
