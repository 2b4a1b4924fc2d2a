"""What ELMo gives a tagger, a parser, a named entity recognizer and a text classifier.

    python benchmarks/downstream.py run OUT --data DATA [--static VECTORS] [--tasks …] [--sizes …]
    python benchmarks/downstream.py table OUT      or benchmarks/downstream.jsonl, what we measured

Every arm of a task has the same architecture around it, the same sentences, seeds, batches and
steps; nothing is selected by its scores, which are those of the test set after the last step. DATA
holds UD_English-EWT, wnut17 and sst2 (see `TASKS`). VECTORS is a directory of static vectors as
`spacy init vectors` writes it, of the ELMo vectors' width and trained on as many words of the same
text as the biLM has read. Ours were made by

    floret.train_unsupervised(TEXT, model="cbow", mode="floret", hashCount=2, bucket=50000, minn=4,
                              maxn=5, minCount=5, dim=256, epoch=5).save_floret_vectors(FILE)
    python -m spacy init vectors en FILE VECTORS --mode floret

Each result is a small file in OUT. Those that are there are not computed again, so a run that was
stopped is gone on with, and several at once may share the work.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.training.converters import conll_ner_to_docs, conllu_to_docs
from spacy.training.loop import train_while_improving
from spacy.util import fix_random_seed, load_model_from_config
from thinc.api import Adam

WIDTH = 96  # of spaCy's HashEmbedCNN
OUTSIDE = 30.0  # below the others, a weight is 1e-13 after the softmax


class Task(NamedTuple):
    """What is learned, from how much, for how long.

    Attributes:
        factory: the spaCy component.
        score: what is reported, as `Language.evaluate` names it.
        sizes: numbers of training sentences, None for all; and the steps of each.
        read: (data, split) to Docs.
        batch_words: words of a step.
        by_label: as many training texts of each label.
    """

    factory: str
    score: str
    sizes: dict[int | None, int]
    read: Callable[[Path, str], Iterator[Doc]]
    batch_words: int = 400
    by_label: bool = False


def read_ewt(data: Path, split: str) -> Iterator[Doc]:
    text = (data / "ud" / "UD_English-EWT" / f"{split}.conllu.xz").read_bytes()
    return conllu_to_docs(lzma.decompress(text).decode("utf8"), n_sents=1, no_print=True)


def read_wnut(data: Path, split: str) -> Iterator[Doc]:
    text = (data / "ner" / "wnut17" / f"{split}.iob.xz").read_bytes()
    yield from conll_ner_to_docs(lzma.decompress(text).decode("utf8"), n_sents=1, no_print=True)


def read_sst(data: Path, split: str) -> Iterator[Doc]:
    vocab = spacy.blank("en").vocab
    text = lzma.decompress((data / "textcat" / "sst2" / f"{split}.jsonl.xz").read_bytes())
    for line in text.decode("utf8").splitlines():
        sentence = json.loads(line)
        doc = Doc(vocab, words=sentence["text"].split())
        doc.cats = {label: float(label == sentence["label"]) for label in ("POS", "NEG")}
        yield doc


def read_banking(data: Path, split: str) -> Iterator[Doc]:
    nlp = spacy.blank("en")
    lines = lzma.decompress((data / "textcat" / "banking77" / f"{split}.jsonl.xz").read_bytes())
    queries = [json.loads(line) for line in lines.decode("utf8").splitlines()]
    labels = sorted({query["label"] for query in queries})
    for query in queries:
        doc = nlp.make_doc(query["text"])
        doc.cats = {label: float(label == query["label"]) for label in labels}
        yield doc


TASKS = {
    "tagger": Task("tagger", "tag_acc", {500: 600, 2000: 900, None: 2000}, read_ewt),
    "parser": Task("parser", "dep_las", {500: 600, 2000: 900, None: 2000}, read_ewt),
    "ner": Task("ner", "ents_f", {None: 1000}, read_wnut),
    "textcat": Task("textcat", "cats_micro_f", {1000: 300, None: 800}, read_sst),
    "intents": Task("textcat", "cats_micro_f", {770: 1000}, read_banking, by_label=True),
}

SIZES = list(dict.fromkeys(str(size or "all") for task in TASKS.values() for size in task.sizes))

MULTI_HASH = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": WIDTH,
    "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
    "rows": [5000, 1000, 2500, 2500],
    "include_static_vectors": False,
}
ENCODER = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": WIDTH,
    "depth": 4,
    "window_size": 1,
    "maxout_pieces": 3,
}


def listener(**settings: Any) -> dict[str, Any]:
    return {"@architectures": "spacy-elmo.ElmoListener.v1", **settings}


def only(layer: int) -> dict[str, Any]:
    """A mix of one layer, the others being shut out; γ learns."""
    weights = [0.0 if j == layer else -OUTSIDE for j in range(3)]
    return listener(initial_weights=weights, mix_l2=0.0)


def cnn(static: bool = False) -> dict[str, Any]:
    """spaCy's HashEmbedCNN, part by part."""
    embed = {**MULTI_HASH, "include_static_vectors": static}
    return {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": ENCODER}


def with_elmo(
    elmo: dict[str, Any], output: dict[str, Any] | None = None, static: bool = False
) -> dict[str, Any]:
    return {
        "@architectures": "spacy-elmo.Tok2Vec.v1",
        "elmo": elmo,
        "embed": {**MULTI_HASH, "include_static_vectors": static},
        "encode": ENCODER,
        "output_elmo": output,
    }


ARMS: dict[str, dict[str, Any]] = {
    "HashEmbedCNN": cnn(),
    "static vectors": cnn(static=True),
    "ELMo, layer 0": with_elmo(only(0)),
    "ELMo, top layer": with_elmo(only(2)),
    "ELMo, average (λ = 1)": with_elmo(listener(mix_l2=1.0)),
    "ELMo, mix (λ = 0.001)": with_elmo(listener()),
    "ELMo, input and output": with_elmo(listener(), listener()),
    "ELMo, mix and static vectors": with_elmo(listener(), static=True),
}

MODELS: dict[str, dict[str, Any]] = {
    "tagger": {"@architectures": "spacy.Tagger.v2"},
    "parser": {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "parser",
        "extra_state_tokens": False,
        "hidden_width": 64,
        "maxout_pieces": 2,
        "use_upper": True,
    },
    "textcat": {
        "@architectures": "spacy.TextCatReduce.v1",
        "exclusive_classes": True,
        "use_reduce_first": False,
        "use_reduce_last": False,
        "use_reduce_max": True,
        "use_reduce_mean": True,
    },
}
MODELS["ner"] = {**MODELS["parser"], "state_type": "ner"}


def make_nlp(
    task: Task,
    arm: str,
    static: Path | None,
    of_elmo: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
) -> Language:
    """An untrained pipeline, from a config as `spacy train` would read it.

    Args:
        task, arm: what is in it.
        static: directory of vectors, for the arm that has some.
        of_elmo: settings of the biLM that are not the defaults.
        model: the component's model, or what it learns from (tok2vec); that of the arm if None.
    """
    model = model or ARMS[arm]
    if "tok2vec" not in model:
        model = {**MODELS[task.factory], "tok2vec": model}
    components: dict[str, Any] = {task.factory: {"factory": task.factory, "model": model}}
    if arm.startswith("ELMo"):
        elmo = {"@architectures": "spacy-elmo.Elmo.v1", **(of_elmo or {})}
        components = {"elmo": {"factory": "elmo", "model": elmo}, **components}
    config: dict[str, Any] = {
        "nlp": {"lang": "en", "pipeline": list(components)},
        "components": components,
        "initialize": {"vectors": str(static) if "static" in arm else None},
    }
    return load_model_from_config(config, auto_fill=True)


def examples_of(nlp: Language, task: Task, data: Path, split: str) -> list[Example]:
    stored = DocBin(docs=task.read(data, split), store_user_data=True)
    references = stored.get_docs(nlp.vocab)
    words = ((doc, [token.text for token in doc]) for doc in references)
    return [Example(Doc(nlp.vocab, words=each), doc) for doc, each in words if each]


def sample(examples: list[Example], size: int, rng: random.Random, by_label: bool) -> list[Example]:
    """Some of the examples; ``by_label``: as many of each label as of any other."""
    if not by_label:
        return rng.sample(examples, size)
    groups: dict[str, list[Example]] = {}
    for example in examples:
        cats = example.reference.cats
        groups.setdefault(max(cats, key=cats.__getitem__), []).append(example)
    return [each for group in groups.values() for each in rng.sample(group, size // len(groups))]


def batches(
    examples: list[Example], batch_words: int, seed: int
) -> Iterator[tuple[int, list[Example]]]:
    """Epoch and batch, without end; the same ones for the same seed."""
    rng = random.Random(seed)
    for epoch in itertools.count():
        shuffled = rng.sample(examples, len(examples))
        for batch in minibatch_by_words(shuffled, batch_words):
            yield epoch, batch


def measure(
    task: Task,
    size: int | None,
    arm: str,
    seed: int,
    data: Path,
    static: Path | None,
    model: dict[str, Any] | None = None,
    split: str = "test",
) -> dict[str, Any]:
    """Train once; the score on the test set, in percent."""
    fix_random_seed(seed)
    nlp = make_nlp(task, arm, static, model=model)
    train = examples_of(nlp, task, data, "train")
    if size is not None:  # the same for all arms, others for each seed
        train = sample(train, size, random.Random(seed), task.by_label)
    nlp.initialize(lambda: train)
    start = time.perf_counter()
    steps = train_while_improving(
        nlp,
        Adam(0.001, L2=0.01, grad_clip=1.0, L2_is_weight_decay=True, use_averages=False),
        batches(train, task.batch_words, seed),
        lambda: (0.0, {}),  # nothing is selected
        dropout=0.1,
        eval_frequency=10**9,
        accumulate_gradient=1,
        patience=0,
        max_steps=task.sizes[size],
        exclude=[],
        annotating_components=[],
        before_update=None,
    )
    for _ in steps:
        pass
    seconds = time.perf_counter() - start
    test = examples_of(nlp, task, data, split)
    scores = nlp.evaluate(test)
    return {"score": 100 * scores[task.score], "seconds": seconds}


def run(arguments: argparse.Namespace) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    for seed, name in itertools.product(arguments.seeds, arguments.tasks):
        task = TASKS[name]
        for size, arm in itertools.product(task.sizes, arguments.arms):
            what = {"task": name, "size": size or "all", "arm": arm, "seed": seed}
            if str(what["size"]) not in arguments.sizes:
                continue
            if "static" in arm and arguments.static is None:
                continue
            number = list(ARMS).index(arm)
            path = arguments.out / f"{name}-{what['size']}-{number}-{seed}.json"
            try:
                path.touch(exist_ok=False)
            except FileExistsError:
                continue  # done, or being done
            try:
                result = measure(task, size, arm, seed, arguments.data, arguments.static)
            except BaseException:
                path.unlink()
                raise
            path.write_text(json.dumps({**what, **result}), encoding="utf8")
            score, seconds = f"{result['score']:.2f}", f"{result['seconds']:.0f} s"
            print(*what.values(), score, seconds, flush=True)


def table(arguments: argparse.Namespace) -> None:
    """Means, the range of the seeds, and the share of HashEmbedCNN's errors that goes away."""
    files = [arguments.out] if arguments.out.is_file() else arguments.out.glob("*.json")
    lines = [line for file in files for line in file.read_text(encoding="utf8").splitlines()]
    results = [json.loads(line) for line in lines]
    scores: dict[tuple[str, Any], dict[str, list[float]]] = {}
    for result in results:
        column = scores.setdefault((result["task"], result["size"]), {})
        column.setdefault(result["arm"], []).append(result["score"])
    columns = [
        (name, size or "all")
        for name, task in TASKS.items()
        for size in task.sizes
        if (name, size or "all") in scores
    ]
    print("| |", " | ".join(f"{name} {size}" for name, size in columns), "|")
    print("|---|" + "---|" * len(columns))
    for arm in ARMS:
        cells = [_cell(scores[column], arm) for column in columns]
        print(f"| {arm} |", " | ".join(cells), "|")


def _cell(column: dict[str, list[float]], arm: str) -> str:
    if arm not in column:
        return ""
    mean, n = statistics.mean(column[arm]), len(column[arm])
    text = f"{mean:.2f} ± {(max(column[arm]) - min(column[arm])) / 2:.2f}"
    if n != 3:
        text += f" (n = {n})"
    if arm != "HashEmbedCNN" and "HashEmbedCNN" in column:
        base = statistics.mean(column["HashEmbedCNN"])
        text += f", {100 * (mean - base) / (100 - base):+.0f} %"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="What ELMo gives tasks.")
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="train and measure")
    running.add_argument("out", type=Path)
    running.add_argument("--data", type=Path, required=True)
    running.add_argument("--static", type=Path, help="directory of vectors")
    running.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    running.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    running.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    running.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    running.set_defaults(command=run)
    printing = commands.add_parser("table", help="print what there is")
    printing.add_argument("out", type=Path)
    printing.set_defaults(command=table)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
