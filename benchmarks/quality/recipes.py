"""Recipes by which components could learn from ELMo: that of `elmo add`, and others.

    python benchmarks/quality/recipes.py OUT --data DATA [--tasks …] [--arms …] [--seeds …]
    python benchmarks/quality/recipes.py OUT --data DATA --times PIPELINES

Each arm is a config of `spacy init config`, changed by `add_elmo` and then here, and trained for
fixed steps. Nothing is selected; scores are those of the dev set, or with ``--split test`` of the
test set, with the averages of the parameters. ``--save`` keeps the pipelines of the first seed in a
folder, whose microseconds a word ``--times`` measures, in turn. ``--swap WEIGHTS`` lets each
pipeline read with other weights of the same biLM, too: what int8 gates change. OUT is a file of
`results.py`.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from downstream import train_for
from results import Results, fingerprint
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config
from tasks import batches, read_ewt, read_few, read_iob, read_wnut
from thinc.api import Adam, Config

from spacy_elmo import add_elmo
from spacy_elmo.weights.find import load_bilm

Block = dict[str, Any]
PART, TIMES = "recipes", "recipe times"  # of the results
WEIGHTS = Path(__file__).parents[2] / "project" / "weights"
N_DEV = 100  # Docs of ten sentences; ten times as many of one
N_NAMES = 500  # Portuguese Docs with names


class Task(NamedTuple):
    """What is learned, from how many Docs, for how many steps.

    Attributes:
        components: names of spaCy's factories.
        scores: what is reported, as `Language.evaluate` names it.
        read: (data, split) to Docs.
        n_docs: of the training set, the first ones; None: all.
        n_dev: of the dev set.
        steps: of 400 words.
        lang, weights: of the texts.
    """

    components: list[str]
    scores: list[str]
    read: Callable[[Path, str], Iterator[Doc]]
    n_docs: int | None
    n_dev: int
    steps: int
    lang: str = "en"
    weights: str | Path = "en_sm"


def read_spans(data: Path, split: str) -> Iterator[Doc]:
    """Names as spans that may overlap."""
    for doc in read_wnut(data, split):
        doc.spans["sc"] = list(doc.ents)
        yield doc


def read_names_too(data: Path, split: str) -> Iterator[Doc]:
    """Portuguese: the Docs of a treebank, then others that have only names."""
    yield from read_few("pt", data, split, n_sents=10)
    for doc in itertools.islice(read_iob("pt", data, split), N_NAMES):
        iob = [f"{t.ent_iob_}-{t.ent_type_}".rstrip("-") for t in doc]
        yield Doc(doc.vocab, words=[t.text for t in doc], ents=iob)


TREES = ["tag_acc", "dep_las", "sents_f"]
ten = partial(read_ewt, n_sents=10)
TASKS = {
    "English, 100": Task(["tagger", "parser"], TREES, ten, 10, N_DEV, 200),
    "English, 500": Task(["tagger", "parser"], TREES, ten, 50, N_DEV, 600),
    "English, 5000": Task(["tagger", "parser"], TREES, ten, 500, N_DEV, 900),
    "English, 12544": Task(["tagger", "parser"], TREES, ten, None, N_DEV, 2000),
    "names": Task(["ner"], ["ents_f"], read_wnut, None, 10 * N_DEV, 1000),
    "spans": Task(["spancat"], ["spans_sc_f"], read_spans, None, 10 * N_DEV, 400),
    "German, 400": Task(
        ["tagger", "morphologizer", "trainable_lemmatizer", "parser"],
        [*TREES, "lemma_acc", "morph_acc"],
        partial(read_few, "de", n_sents=10), None, N_DEV, 300, "de", WEIGHTS / "de_sm",
    ),
    "Portuguese, 400": Task(
        ["tagger", "parser", "ner"], [*TREES, "ents_f"],
        read_names_too, None, 10 * N_DEV, 600, "pt", WEIGHTS / "pt_sm",
    ),
}  # fmt: skip


def elmo_add(config: Block) -> None:
    """What `elmo add` writes: the `tok2vec`, of four layers, reads ELMo for all; behind it, the mix
    of each component, unless it finds names and is alone."""


def names_twice(config: Block) -> None:
    """The same with a mix for names also where they are alone."""
    mix = {"@architectures": "spacy-elmo.Tok2Vec.v1", "encode": None, "output_elmo": None}
    mix["elmo"] = config["components"]["tok2vec"]["model"]["elmo"]
    for model in models_of_names(config):
        if "embed" not in model["tok2vec"]:
            model["tok2vec"] = deepcopy({**mix, "embed": model["tok2vec"]})


def names_once(config: Block) -> None:
    """The same without a mix for names."""
    for model in models_of_names(config):
        model["tok2vec"] = model["tok2vec"].get("embed", model["tok2vec"])


def models_of_names(config: Block) -> list[Block]:
    return [c["model"] for name, c in config["components"].items() if name in NAMES]


def shared_one_layer(config: Block) -> None:
    """What `elmo add` writes, with one layer."""
    config["components"]["tok2vec"]["model"]["encode"]["depth"] = 1


def four_layers(config: Block) -> None:
    """Embedding and encoder, of four layers, in each component; ELMo at the input and, but for
    names, at the output, too."""
    shared = config["components"].pop("tok2vec")["model"]
    config["nlp"]["pipeline"].remove("tok2vec")
    for name in config["nlp"]["pipeline"][1:]:
        own = deepcopy(shared)
        own["embed"]["width"] = own["encode"]["width"]
        own["encode"]["depth"] = 4
        own["output_elmo"] = None if name in NAMES else deepcopy(own["elmo"])
        config["components"][name]["model"]["tok2vec"] = own


NAMES = ("ner", "spancat")
WITHOUT, LIGHT = "without", "light"  # `spacy init config`; `elmo add --light`: the mixes alone
CHANGES: dict[str, Callable[[Block], None]] = {
    each.__name__: each
    for each in (elmo_add, names_twice, names_once, four_layers, shared_one_layer)
}
ARMS = [WITHOUT, LIGHT, *CHANGES]
ADDED, OLDER = elmo_add.__name__, four_layers.__name__
TITLES = {  # of the table's columns
    WITHOUT: "without ELMo",
    OLDER: "four layers in each",
    ADDED: "`elmo add`: four, shared",
    shared_one_layer.__name__: "one, shared",
    LIGHT: "`--light`: mixes alone",
}
LABELS = {  # of the scores
    "tag_acc": "tags", "dep_las": "trees", "sents_f": "sentence ends", "ents_f": "NER",
    "spans_sc_f": "F1", "lemma_acc": "lemmas", "morph_acc": "morphology",
}  # fmt: skip


def make_config(
    components: list[str], arm: str, lang: str = "en", weights: str | Path = "en_sm"
) -> Block:
    base: Config = init_config(lang=lang, pipeline=components, optimize="efficiency")
    if arm == WITHOUT:
        return base
    config = add_elmo(base, weights=weights, light=arm == LIGHT)
    if arm != LIGHT:
        CHANGES[arm](config)
    return config


def examples(nlp: Language, task: Task, data: Path, split: str) -> list[Example]:
    """The Docs of a split, predicted from their text where spaCy's tokenizer reads it."""
    n = {"train": task.n_docs, "dev": task.n_dev, "test": None}[split]
    docs = DocBin(docs=itertools.islice(task.read(data, split), n), store_user_data=True)
    found = [doc for doc in docs.get_docs(nlp.vocab) if len(doc)]
    return [Example(nlp.make_doc(doc.text), doc) for doc in found]


def train(task: Task, arm: str, seed: int, data: Path, weights: str | Path, steps: int) -> Any:
    """A trained pipeline, and its optimizer, which has the averages."""
    fix_random_seed(seed)
    config = make_config(task.components, arm, task.lang, weights)
    nlp = load_model_from_config(config, auto_fill=True)
    every = examples(nlp, task, data, "train")
    random.Random(seed).shuffle(every)
    nlp.initialize(lambda: every)
    optimizer = Adam(0.001, L2=0.01, grad_clip=1.0, L2_is_weight_decay=True, use_averages=True)
    train_for(nlp, optimizer, batches(every, 400, seed), 0.1, steps)
    return nlp, optimizer


def measure(
    unit: Block, data: Path, save: Path | None = None, swap: str | None = None, steps: int = 0
) -> Block:
    """Train once: scores in percent, MB of the components without the biLM, seconds of one core.

    Args:
        unit: "task", "arm" and "seed"; "split", if it is not the dev set.
        data: see `tasks`.
        save: where to write the pipeline.
        swap: other weights, with which the pipeline reads, too.
        steps: other than those of the task.
    """
    task, start = TASKS[unit["task"]], time.process_time()
    nlp, optimizer = train(task, unit["arm"], unit["seed"], data, task.weights, steps or task.steps)
    seconds = time.process_time() - start
    dev = examples(nlp, task, data, unit.get("split", "dev"))

    def score() -> dict[str, float]:
        scores = nlp.evaluate([Example(nlp.make_doc(e.reference.text), e.reference) for e in dev])
        return {name: 100 * scores[name] for name in task.scores}

    found: Block = {}
    if swap is not None:
        found["last"], said = score(), predictions(nlp, dev)
        read_with(nlp, swap)
        others = predictions(nlp, dev)
        differ = statistics.mean(a != b for a, b in zip(said, others, strict=True))
        found["swapped"] = {"scores": score(), "differ": 100 * differ}
        read_with(nlp, task.weights)
    with nlp.use_params(optimizer.averages):
        found["scores"] = score()
        if save is not None:
            save.parent.mkdir(parents=True, exist_ok=True)
            nlp.to_disk(save)
    size = sum(len(nlp.get_pipe(name).to_bytes()) for name in nlp.pipe_names if name != "elmo")
    return {**found, "MB": size / 1e6, "seconds": seconds}


def read_with(nlp: Language, weights: str | Path) -> None:
    """Let the frozen biLM of a pipeline read by other weights of its shape."""
    layer, other = nlp.get_pipe("elmo").bilm, load_bilm(weights)
    layer.model.load_state_dict(other.state_dict())
    layer.model.config = other.config
    layer.model.clear_caches()
    layer.cache.clear()


def predictions(nlp: Language, dev: list[Example]) -> list[Any]:
    """What is predicted of each word."""
    docs = nlp.pipe([nlp.make_doc(example.reference.text) for example in dev])
    return [(t.tag_, t.head.i, t.dep_, t.ent_iob_, t.ent_type_) for doc in docs for t in doc]


def times(results: Results, folder: Path, data: Path, n_runs: int) -> None:
    """The microseconds of one core that each saved pipeline takes for a word of the dev set, of
    whose Docs it reads a fifth: the least of some runs, in which the pipelines take turns."""
    for name, task in TASKS.items():
        paths = {arm: path for arm in ARMS if (path := folder / name / arm).exists()}
        loaded = {arm: spacy.load(path) for arm, path in paths.items()}
        docs = itertools.islice(task.read(data, "dev"), task.n_dev // 5)
        texts = [doc.text for doc in docs]
        found: dict[str, float] = {}
        for _, (arm, nlp) in itertools.product(range(n_runs), loaded.items()):
            start = time.process_time()
            n_words = sum(map(len, nlp.pipe(texts)))
            taken = 1e6 * (time.process_time() - start) / n_words
            found[arm] = min(taken, found.get(arm, taken))
        if len(found) > 1:
            results.add(TIMES, {"task": name}, fingerprint(task.weights), found)


def lines(results: Results) -> Iterator[str]:
    """The table: means of the seeds, and the differences between `elmo add` and four layers in
    each component, their mean and standard deviation, of the seeds of both."""
    found: dict[tuple[str, str], dict[int, Block]] = {}
    taken: dict[str, dict[str, float]] = {}
    for record in results.records.values():
        unit, each = record["unit"], record["found"]
        if record["part"] == TIMES:
            taken[unit["task"]] = each
        elif record["part"] == PART and "split" not in unit:
            found.setdefault((unit["task"], unit["arm"]), {})[unit["seed"]] = each
    yield f"| | {' | '.join(TITLES.values())} | `elmo add` over four layers |"
    yield "|---" * (len(TITLES) + 2) + "|"

    def row(label: str, cells: list[float | None], gain: str = "") -> str:
        texts = ("–" if cell is None else f"{cell:.1f}" for cell in cells)
        return f"| {label} | {' | '.join(texts)} | {gain} |"

    for name in (name for name in TASKS if (name, ADDED) in found):
        by_arm = {arm: found.get((name, arm), {}) for arm in TITLES}
        ours, older = by_arm[ADDED], by_arm[OLDER]
        for score in TASKS[name].scores:
            gains = [
                ours[seed]["scores"][score] - older[seed]["scores"][score]
                for seed in ours.keys() & older.keys()
            ]
            gain = f"{statistics.mean(gains):+.1f}".replace("-", "−") if gains else ""
            if len(gains) > 1:
                gain += f" ± {statistics.stdev(gains):.1f}"
            means = [
                statistics.mean(f["scores"][score] for f in each.values()) if each else None
                for each in by_arm.values()
            ]
            yield row(f"{name}: {LABELS[score]}", means, gain)
        if name in taken:
            yield row("… µs a word", [taken[name].get(arm) for arm in TITLES])
        first = (next(iter(each.values()), {"MB": None}) for each in by_arm.values())
        yield row("… MB", [each["MB"] for each in first])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--save", type=Path, help="keep the pipelines of seed 0 here")
    parser.add_argument("--split", choices=["dev", "test"], default="dev")
    parser.add_argument("--swap", help="weights of the same biLM, its gates rounded otherwise")
    parser.add_argument("--steps", type=int, default=0, help="only try it, with so many steps")
    parser.add_argument("--times", type=Path, help="measure the pipelines kept here, nothing else")
    parser.add_argument("--runs", type=int, default=5, help="of --times")
    options = parser.parse_args()
    results = Results(options.out)
    if options.times:
        times(results, options.times, options.data, options.runs)
        options.seeds = []
    for seed, name, arm in itertools.product(options.seeds, options.tasks, options.arms):
        unit, weights = {"task": name, "arm": arm, "seed": seed}, fingerprint(TASKS[name].weights)
        unit |= {"split": options.split} if options.split != "dev" else {}
        results.read()
        if (found := results.find(PART, unit, weights)) is None:
            save = options.save / name / arm if options.save and not seed else None
            swap = None if arm == WITHOUT else options.swap
            found = measure(unit, options.data, save, swap, options.steps)
            results.add(PART, unit, weights, found)
        print(*unit.values(), found, flush=True)
    print(*lines(results), sep="\n")


if __name__ == "__main__":
    main()
