"""Everything that docs/evidence.md shows of a biLM, by one command.

    python benchmarks/quality/evidence.py --weights DIR [--data DATA] [--parts …] [--only TEXT]
        [--out FILE]
    python benchmarks/quality/evidence.py --write-docs

Measures, with the other scripts of this folder, what depends on the weights, and writes it to a
file of `results.py`, by default results/NAME.jsonl. Units that are in it for these weights are not
measured again: a run that was stopped is continued, and several at once may share the work. What
needs no biLM, such as another model's vectors, is measured once for all weights. ``--write-docs``
fills the tables of the page between ``<!-- table: NAME -->`` and ``<!-- end -->`` (see `tables.py`)
and draws its pictures; a test compares them with the file.

The language is that of the weights' card, and of each part what there are data for is measured.
``--head`` names weights of the same biLM with a larger head than the embedded 20,000 words, for the
perplexities. ``--quick`` only tries the parts, with few words and steps; its results do not count.
Arms that need a file of another script (``--static`` and so on, see `downstream.py`) are left out
without it. Speeds, and what the code does whatever the weights are, have scripts of their own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import all_words
import blimp
import downstream
import homonyms
import noise
import perplexities
import similarity
import tables
import text_means
from arms import (
    ARMS,
    BOTH,
    ENSEMBLE,
    LINEAR,
    MIX,
    SETTINGS,
    WITHOUT,
    Arm,
    Files,
    add_file_options,
    given_files,
)
from results import Results, Unit, fingerprint
from spacy.language import Language
from tables import TAGGER_ONLY
from tasks import TASKS

from spacy_elmo.cli.demo import SENTENCES
from spacy_elmo.pipeline.mixes import Mix
from spacy_elmo.viz import draw_mixes
from spacy_elmo.viz.scores import Points, draw_curves
from spacy_elmo.weights.find import find_weights

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence.md"
STEPS, WORDS, EVERY, MOST = 2, 2000, 100, 20  # of a quick run: most is of sentences


class Job(NamedTuple):
    """Something to measure.

    Attributes:
        unit: its name in the results.
        reads: what it depends on: "" (no biLM), "bilm", or that and the "head" or its "own head".
        measure: does it.
        part: of the results, if not the part's own name.
    """

    unit: Unit
    reads: str
    measure: Callable[[], Any]
    part: str = ""


class Setup:
    """What is measured, and by which data.

    Args:
        arguments: of the command line.
    """

    def __init__(self, arguments: argparse.Namespace):
        self.arguments, self.data, self.quick = arguments, arguments.data, arguments.quick
        self.weights, self.head = arguments.weights, arguments.head or arguments.weights
        self.lang = find_weights(self.weights).card().meta.get("lang", "en")
        self.seeds = [0] if self.quick else arguments.seeds
        self.most = MOST if self.quick else None
        self.tasks = [name for name, task in TASKS.items() if task.lang == self.lang]

    def files(self, task: str = "tagger") -> Files:
        return given_files(self.arguments, task)

    def fingerprint(self, reads: str) -> str | None:
        """Of what a job depends on; that of a quick run is another one."""
        head = {"head": self.head, "own head": self.weights}.get(reads)
        found = fingerprint(self.weights, head) if reads else None
        return f"quick {found}" if self.quick else found

    @cached_property
    def nlp(self) -> Language:
        return similarity.make_nlp(self.weights)

    @cache  # noqa: B019  there is one
    def lm(self, head: str) -> tuple[perplexities.LM, Any]:
        """The language model, in English with the words of eval_vocab.txt, and its unigrams."""
        if self.lang != "en":
            return perplexities.LM.load(self.weights, head), None
        lm = perplexities.LM.load(self.weights, head, self.data / "eval_vocab.txt")
        texts = perplexities.texts(self.data, "train").items()
        train = [file for name, file in texts if name not in perplexities.NEVER_TRAINED_ON]
        return lm, lm.count(train, 200 if self.quick else 200_000)

    def predict(self, head: str, text: Path, n_words: int) -> dict[str, float]:
        lm, counted = self.lm(head)
        return lm.measure(text, WORDS if self.quick else n_words, counted)


def perplexity(setup: Setup) -> Iterator[Job]:
    """Of whole texts, with the larger head if there is one; none without a head."""
    has_head = find_weights(setup.head).has_head()
    for name, file in perplexities.texts(setup.data, "valid", setup.lang).items():
        if has_head and (setup.lang != "en" or name in tables.REGISTERS):
            yield Job({"text": name}, "head", partial(setup.predict, setup.head, file, 0))


def registers(setup: Setup) -> Iterator[Job]:
    """20,000 words of each register, with the weights' own head."""
    if find_weights(setup.weights).has_head():
        for name, file in perplexities.texts(setup.data, "valid").items():
            measure = partial(setup.predict, setup.weights, file, 20_000)
            yield Job({"register": name}, "own head", measure)


def minimal_pairs(setup: Setup) -> Iterator[Job]:
    if find_weights(setup.weights).has_head() and (setup.data / "blimp").exists():

        def measure() -> Any:
            lm = perplexities.LM.load(setup.weights)
            return blimp.measure(lm, setup.data, EVERY if setup.quick else 1)

        yield Job({"pairs": "all"}, "own head", measure)


def trained(setup: Setup, units: Iterator[Unit]) -> Iterator[Job]:
    for unit in units:
        yield train(setup, unit, ARMS[unit["arm"]], unit["size"])._replace(part=downstream.PART)


def train(setup: Setup, unit: Unit, arm: Arm, size: int | str, split: str = "test") -> Job:
    measure = partial(
        downstream.measure, TASKS[unit["task"]], size, arm, unit["seed"], setup.data, split,
        files=setup.files(unit["task"]), weights=setup.weights,
        max_steps=STEPS if setup.quick else None,
    )  # fmt: skip
    return Job(unit, "" if arm.elmo is None else "bilm", measure)


def tasks(setup: Setup) -> Iterator[Job]:
    """What users choose from, with the seeds of the command line."""
    arms = [WITHOUT, MIX, *(name for name, arm in ARMS.items() if arm.needs not in ("", "adapted"))]
    names = [n for n in setup.tasks if TASKS[n].factory != "textcat" or setup.lang != "en"]
    if setup.lang == "ko":
        arms.append(LINEAR)
    for seed in setup.seeds:  # all of the first one first
        yield from trained(setup, downstream.units(names, arms, [], [seed], setup.files()))
        for name in (n for n in setup.tasks if TASKS[n].factory in ("tagger", "parser")):
            size = next(iter(TASKS[name].steps))
            yield from trained(setup, downstream.units([name], [BOTH], [size], [seed]))


def arms(setup: Setup) -> Iterator[Job]:
    """Which layers, and where, by one seed; the learned mix and its alternatives by five."""
    for task, size in tables.COMPARED_MIXES.items():
        names = [n for n in tables.ARMS.values() if task == "tagger" or n not in TAGGER_ONLY]
        names += [] if task == "ner" else ["HashEmbedCNN, 3 × the steps"]
        yield from trained(setup, downstream.units([task], names, [size], [0], setup.files()))
    names = [MIX, "ELMo, average (λ = 1)", "ELMo, top layer"]
    for task, size in tables.COMPARED_MIXES.items():
        yield from trained(setup, downstream.units([task], names, [size], range(5)))


def labels(setup: Setup) -> Iterator[Job]:
    """The learning curve of a tagger."""
    yield from trained(setup, downstream.units(["tagger"], [WITHOUT, MIX], tables.SHARES, [0]))


def settings(setup: Setup) -> Iterator[Job]:
    """The listener's, on the dev set."""
    for name, arm in SETTINGS.items():
        yield train(setup, {"task": "tagger", "setting": name, "seed": 0}, arm, 500, "dev")


def typos(setup: Setup) -> Iterator[Job]:
    for name in (WITHOUT, MIX):
        steps = STEPS if setup.quick else None
        measure = partial(noise.measure, setup.data, ARMS[name], 0, setup.weights, steps)
        yield Job({"arm": name, "seed": 0}, "bilm" if name == MIX else "", measure)


def texts(setup: Setup) -> Iterator[Job]:
    """Logistic regressions on the means of texts, and on counted words; and spaCy's classifiers."""
    for name, seed in product(setup.tasks, setup.seeds):
        if TASKS[name].factory == "textcat":
            measure = partial(text_means.measure, setup.weights, setup.data, name, seed)
            yield Job({"task": name, "seed": seed}, "bilm", measure)
            if (embedded := setup.files().get("embedded")) is not None:
                unit = {"task": name, "model": "MiniLM-L6", "seed": seed}
                yield Job(unit, "", partial(measure, embedded))
            size = next(iter(TASKS[name].steps))
            yield from trained(setup, downstream.units([name], [ENSEMBLE, LINEAR], [size], [seed]))


def similar(setup: Setup) -> Iterator[Job]:
    """The STS benchmark, WiC and CoarseWSD-20."""
    for measure in (similarity.sentences, similarity.in_context, similarity.senses):
        unit = {"set": measure.__name__}
        yield Job(unit, "bilm", lambda f=measure: f(setup.nlp, setup.data, setup.most))


def senses(setup: Setup) -> Iterator[Job]:
    """SemCor's senses of all words, and sentences written for it."""
    if setup.lang == "en":
        unit = {"set": "all words"}
        yield Job(unit, "bilm", lambda: all_words.measure(setup.nlp, setup.data, setup.most))
    file = SENTENCES if setup.lang == "en" else homonyms.KOREAN
    yield Job({"set": "sentences"}, "bilm", lambda: homonyms.measure(setup.nlp, file))


PARTS: dict[str, Callable[[Setup], Iterator[Job]]] = {  # the cheap ones first
    "perplexity": perplexity,
    "registers": registers,
    "blimp": minimal_pairs,
    "similarity": similar,
    "senses": senses,
    "texts": texts,
    "noise": typos,
    "labels": labels,
    "arms": arms,
    "tasks": tasks,
    "settings": settings,
}
OTHER_LANGUAGES = {"ko": ("perplexity", "senses", "tasks")}  # others: the first and the last


def run(setup: Setup, results: Results, parts: list[str], only: str) -> None:
    """Measure what is missing of some parts."""
    there = OTHER_LANGUAGES.get(setup.lang, ("perplexity", "tasks"))
    for name in parts if setup.lang == "en" else [part for part in parts if part in there]:
        for job in PARTS[name](setup):
            if only in ", ".join(map(str, job.unit.values())):
                weights = setup.fingerprint(job.reads)
                results.get(job.part or name, job.unit, weights, job.measure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", default="en_sm", help="with statistics (default: en_sm)")
    parser.add_argument("--head", help="weights with a larger head (default: those of --weights)")
    parser.add_argument("--data", type=Path, default=Path("data"), help="see README.md")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", default="", help="units with this in their names")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=Path, help="default: results/NAME.jsonl")
    parser.add_argument("--quick", action="store_true", help="only try it")
    parser.add_argument("--write-docs", action="store_true", help="fill the tables of the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="default: docs/evidence.md")
    add_file_options(parser)
    arguments = parser.parse_args()
    results = Results(arguments.out or tables.RESULTS / f"{Path(arguments.weights).name}.jsonl")
    if arguments.write_docs:
        write_docs(fingerprint(arguments.weights), results, arguments.page)
    else:
        run(Setup(arguments), results, arguments.parts, arguments.only)


def write_docs(weights: str, results: Results, page: Path) -> None:
    """Drop the records of other weights, fill the tables that there are records for, and draw the
    pictures that stand beside the page."""
    results.keep(weights)
    text, missing = tables.fill(page.read_text(encoding="utf-8"), results, weights)
    page.write_text(text, encoding="utf-8")
    languages = page.with_name("languages.md")
    text = tables.fill_languages(languages.read_text(encoding="utf-8"))
    languages.write_text(text, encoding="utf-8")
    for name, what in missing.items():
        print(f"The table {name} stays as it is: {what}")
    images, found = page.parent / "images", tables.Found(results, weights)
    if images.exists():
        if "labels" not in missing:
            draw_learning(found, images / "curves.svg")
        if "alternatives" not in missing:
            draw_learned(found, images / "mixes.svg")


def draw_learning(found: tables.Found, picture: Path) -> None:
    """The scores of a tagger by the share of its labels."""
    arms: dict[str, Points] = {}
    for arm, size in product((MIX, WITHOUT), tables.SHARES):
        share = 100.0 if size == "all" else float(size.rstrip("%"))
        arms.setdefault(arm, {})[share] = [found.scores("tagger", size, arm)[0]]
    draw_curves({"accuracy, %": arms}, "Tagger", "share of the labels, %", picture)


def draw_learned(found: tables.Found, picture: Path) -> None:
    """The mixes that tasks have learned from all labels, means of the seeds."""
    means = []
    for task in ("tagger", "parser", "ner"):
        seeds = found.all("tasks", task=task, size="all", arm=MIX).values()
        mixes = [Mix(*mix) for each in seeds for mix in each.get("mixes", [])]
        weights = zip(*(mix.weights for mix in mixes), strict=True)
        gamma = mean(mix.gamma for mix in mixes)
        means.append(Mix(task, "elmo", tuple(map(mean, weights)), gamma))
    draw_mixes(means, title="Mixes of the tasks", output=picture)


if __name__ == "__main__":
    main()
