"""Each task, trained with ELMo and without it: the same data, seed and steps, and the same model
but for text classifiers.

The models are those of the recipes in configs, or with ``--recipe added`` those of `spacy init
config` and `elmo add`. Few labels leave no dev set to select by: these take a fixed number of
steps, in gold sentences and words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from datasets import TASKS, present
from sizes import Size, find_size
from spacy.cli.init_config import init_config
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.util import load_config
from thinc.api import Config
from wasabi import msg

from spacy_elmo import add_elmo
from spacy_elmo.cli.options import report_errors
from spacy_elmo.compare.arms import checksum

RECIPES = {"tagger": "tagger_parser", "parser": "tagger_parser", "ner": "ner", "textcat": "textcat"}
ARMS = ("elmo", "plain")  # with ELMo and without it
ADDED_STEPS = 1_000
DOCS_PER_LABEL = 10  # that a parser learns


@report_errors("Cannot train")
def main(
    run: Path,
    tasks: str = ",".join(TASKS),
    lang: str = "en",
    size: str = "full",
    tokenizer: str = "spacy.Tokenizer.v1",
    steps: int = 0,
    seed: int = 0,
    gpu_id: int = -1,
    recipe: str = "configs",
) -> None:
    """Write RUN/models/TASK-elmo and RUN/models/TASK-plain; those that are finished stay."""
    chosen, is_added = find_size(size), recipe == "added"
    steps = min(steps or (ADDED_STEPS if is_added else chosen.steps), chosen.steps)
    # Several evaluations, however short the training: they choose the best model.
    every = steps if is_added else max(1, min(chosen.eval_every, steps // 4))
    chosen = chosen._replace(steps=steps, eval_every=every)
    weights = (run / "bilm.txt").read_text(encoding="utf-8").strip()
    if Path(weights).exists():
        weights = str(Path(weights).resolve())
    for task in present(run, tasks):
        size_of_task = for_few(chosen, run / "corpus" / TASKS[task] / "train.spacy")
        for arm in ARMS:
            if is_added:
                config = make_added(task, arm, size_of_task, weights)
            else:
                config = make_config(task, arm, size_of_task)
                config["vars"]["weights"] = weights
            config["system"]["seed"] = seed
            config["nlp"]["lang"] = lang
            config["nlp"]["tokenizer"] = {"@tokenizers": tokenizer}
            for split in ("train", "dev"):
                path = run / "corpus" / TASKS[task] / f"{split}.spacy"
                config["paths"][split] = str(path.resolve())
            out = run / "models" / f"{task}-{arm}"
            out.mkdir(parents=True, exist_ok=True)
            # spaCy writes model-last from the first evaluation on, so it does not show the end.
            path, finished = out / "config.cfg", out / "finished.txt"
            data = [Path(config["paths"][split]) for split in ("train", "dev")]
            found = checksum(config, data, weights if arm == "elmo" else None)
            if finished.exists() and finished.read_text("utf-8") == found:
                msg.info(f"{out} is trained already")
                continue
            finished.unlink(missing_ok=True)
            msg.divider(f"{task}, {'with ELMo' if arm == 'elmo' else 'without ELMo'}")
            config.to_disk(path)
            train(path, out, use_gpu=gpu_id)
            finished.write_text(found, encoding="utf-8")


def for_few(size: Size, train: Path) -> Size:
    """The size for the Docs of a file. Of few Docs a parser also learns rarer labels: if no label
    of a move is frequent enough, spaCy cannot train it."""
    most = max(1, len(DocBin().from_disk(train)) // DOCS_PER_LABEL)
    return size._replace(min_action_freq=min(size.min_action_freq, most))


def make_config(task: str, arm: str, size: Size) -> Config:
    """The recipe of a task, with its component alone; without ELMo, its listeners are missing, and
    a text classifier is spaCy's."""
    config = load_config(Path("configs", f"{RECIPES[task]}.cfg"))
    names = ["elmo", task, "doc_cleaner"] if arm == "elmo" else [task]
    config["nlp"]["pipeline"] = names
    components: dict[str, Any] = config["components"]
    config["components"] = {name: components[name] for name in names}
    if arm == "plain" and task == "textcat":
        del components[task]["model"]  # so it is spaCy's own: counted words, and a CNN
    elif arm == "plain":
        components[task]["model"]["tok2vec"] |= {"elmo": None, "output_elmo": None}
    if task == "parser":
        components[task]["min_action_freq"] = size.min_action_freq
    return limit(config, size)


def make_added(task: str, arm: str, size: Size, weights: str) -> Config:
    """The config of `spacy init config` for a task, with `elmo add` or without."""
    # Of no language: some need packages for tokenizers of their own, and all else is the same.
    config = init_config(lang="xx", pipeline=[task])
    if arm == "elmo":
        config = add_elmo(config, weights=weights)
    if task == "parser":
        config["components"][task]["min_action_freq"] = size.min_action_freq
    for split in ("train", "dev"):
        config["corpora"][split]["gold_preproc"] = True
    config["training"]["patience"] = 0
    return limit(config, size)


def limit(config: Config, size: Size) -> Config:
    """The config with the steps of a size."""
    training = config["training"]
    training["score_weights"] = {}  # those of the component
    training["max_steps"], training["eval_frequency"] = size.steps, size.eval_every
    return config


if __name__ == "__main__":
    typer.run(main)
