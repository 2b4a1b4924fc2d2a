"""What the tasks are trained with, and their configs: base.cfg, that of a task, and an arm."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from spacy.cli.init_config import init_config
from spacy.util import load_model_from_config
from thinc.api import Config

CONFIGS = Path(__file__).parents[1] / "configs"


class Task(NamedTuple):
    """A task of the paper.

    Attributes:
        component: its name in the pipeline.
        score: its score, as `Language.evaluate` names it.
        title: in tables.
        without, with_elmo: the paper's scores, in percent; None: it is not in the paper.
    """

    component: str
    score: str
    title: str
    without: float | None = None
    with_elmo: float | None = None


TASKS = {
    "questions": Task("question_answering", "answer_f1", "SQuAD, F1", 81.1, 85.8),
    "entailment": Task("entailment", "entailment_acc", "SNLI, accuracy", 88.0, 88.7),
    "roles": Task("semantic_roles", "roles_f", "semantic roles, F1", 81.4, 84.6),
    "coreference": Task("coreference", "coref_f", "coreference, mean F1", 67.2, 70.4),
    "ner": Task("ner", "ents_f", "NER, F1", 90.15, 92.22),
    "sentiment": Task("textcat", "cats_micro_f", "SST-5, accuracy", 51.4, 54.7),
    "gap": Task("coreference", "gap_f", "GAP, F1"),
}

Listener = dict[str, Any]  # settings of an ElmoListener that are not the defaults


class Arm(NamedTuple):
    """Where a component reads ELMo: the listeners at the input and the output of its encoder.

    Attributes:
        elmo, output_elmo: None: no listener.
    """

    elmo: Listener | None = None
    output_elmo: Listener | None = None


# The paper's λ is `mix_l2`, and 0.001 the default.
ARMS = {
    "without": Arm(),
    "input": Arm({}),
    "input and output": Arm({}, {}),
    "output": Arm(None, {}),
    "λ = 1": Arm({"mix_l2": 1.0}),
    "top layer": Arm({"layers": "top"}),
    "layer 0": Arm({"layers": 0}),
    "average": Arm({"trainable": False}),
}


def make_config(
    task: str,
    arm: str = "without",
    *,
    train: Path | str | None = None,
    dev: Path | str | None = None,
    weights: str = "en_sm",
    seed: int = 0,
    steps: int = 0,
    eval_every: int = 0,
    dev_limit: int = 0,
) -> Config:
    """The complete config of a task and an arm, which spaCy can train.

    Args:
        task, arm: keys of `TASKS` and `ARMS`.
        train, dev: .spacy files.
        weights: of the biLM.
        seed: of the weights and the batches.
        steps: of training; 0: as the task's config has it.
        eval_every: steps between evaluations; 0: those of the base config.
        dev_limit: the most Docs of these.
    """
    config = Config().from_disk(CONFIGS / "base.cfg", interpolate=False)
    config = config.merge(Config().from_disk(CONFIGS / f"{task}.cfg", interpolate=False))
    chosen, component = ARMS[arm], TASKS[task].component
    components = config["components"]
    components[component]["model"]["tok2vec"] = make_tok2vec(chosen)
    components["elmo"]["model"]["weights"] = weights
    config["nlp"]["pipeline"] = ["elmo", component]  # listeners come behind what they listen to
    if chosen.elmo is None and chosen.output_elmo is None:
        del components["elmo"]
        config["nlp"]["pipeline"] = [component]
    config["paths"] = {"train": train and str(train), "dev": dev and str(dev)}
    config["system"]["seed"] = seed
    config["corpora"]["dev"]["limit"] = dev_limit
    training = config["training"]
    training["max_steps"] = steps or training["max_steps"]
    # No variable: spaCy checks the types of a schedule's settings before it fills them in.
    training["optimizer"]["learn_rate"]["total_steps"] = training["max_steps"]
    training["eval_frequency"] = eval_every or training["eval_frequency"]
    return load_model_from_config(config, auto_fill=True).config


def make_tok2vec(arm: Arm) -> dict[str, Any]:
    """HashEmbedCNN as `spacy init config` writes it, with the listeners of an arm."""
    parts: dict[str, Any] = init_config(pipeline=["tagger"])["components"]["tok2vec"]["model"]
    parts["embed"]["width"] = parts["encode"]["width"]
    if arm.elmo is None and arm.output_elmo is None:
        return parts
    parts["@architectures"] = "spacy-elmo.Tok2Vec.v1"
    for name, settings in (("elmo", arm.elmo), ("output_elmo", arm.output_elmo)):
        if settings is not None:
            parts[name] = {"@architectures": "spacy-elmo.ElmoListener.v1", **settings}
    return parts


def error_reduction(before: float, after: float) -> float:
    """The share of the errors that are gone, in percent, from scores in percent."""
    return 100 * (after - before) / (100 - before) if before < 100 else 0.0
