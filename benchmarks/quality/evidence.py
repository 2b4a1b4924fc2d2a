"""Everything that docs/evidence.md shows of a biLM, by one command.

    python benchmarks/quality/evidence.py --weights DIR [--data DATA] [--parts …] [--only TEXT]
        [--out FILE]
    python benchmarks/quality/evidence.py --write-docs

Measures, with the other scripts of this folder, what depends on the weights, and writes it to a
file of `results.py`, by default results/NAME.jsonl. Units that are in it for these weights are not
measured again: a run that was stopped is continued, and several at once may share the work. What
needs no biLM, such as another model's vectors, is measured once for all weights. ``--write-docs``
fills the tables of the page between ``<!-- table: NAME -->`` and ``<!-- end -->`` (see `tables.py`)
and draws its pictures; a test compares them with the file. ``--list`` prints the units and which of
them are there.

The language is that of the weights' card, and of each part what there are data for is measured.
``--head`` names weights of the same biLM with a larger head than the embedded 20,000 words, for the
perplexities. ``--quick`` only tries the parts, with few words and steps; its results do not count.
Arms that need a file of another script (``--static`` and so on, see `downstream.py`) are left out
without it. Speeds, and what the code does whatever the weights are, have scripts of their own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import all_words
import blimp
import downstream
import homonyms
import noise
import perplexities
import probes
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
    Files,
    add_file_options,
    given_files,
)
from results import Results, Unit, fingerprint
from spacy.language import Language
from tables import TAGGER_ONLY
from tasks import TASKS

from spacy_elmo.cli.demo import SENTENCES
from spacy_elmo.weights.find import find_weights

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence.md"
STEPS, WORDS, SHARE, MOST = 2, 2000, 0.01, 20  # of a quick run: most is of sentences


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
        self.lang = arguments.lang or find_weights(self.weights).card().meta.get("lang", "en")
        self.seeds = [0] if self.quick else arguments.seeds
        self.max_steps = STEPS if self.quick else None
        self.tasks = [name for name, task in TASKS.items() if task.lang == self.lang]

    def files(self, task: str = "tagger") -> Files:
        return given_files(self.arguments, task)

    def fingerprint(self, reads: str) -> str | None:
        """Of what a job depends on; that of a quick run is another one."""
        head = {"head": self.head, "own head": self.weights}.get(reads)
        found = self.fingerprint_of(head) if reads else None
        return f"quick {found}" if self.quick else found

    @cache  # noqa: B019  there is one
    def fingerprint_of(self, head: str | None) -> str:
        return fingerprint(self.weights, head)

    @cached_property
    def nlp(self) -> Language:
        return similarity.make_nlp(self.weights)

    @cached_property
    def layers(self) -> probes.Elmo:
        return probes.Elmo(self.weights)

    @cache  # noqa: B019  there is one
    def lm(self, head: str, vocab: Path | None = None) -> perplexities.LM:
        return perplexities.LM.load(self.weights, head, vocab)

    @property
    def vocab(self) -> Path | None:
        file = self.data / "eval_vocab.txt"
        return file if self.lang == "en" else None

    @cache  # noqa: B019
    def counted(self, head: str) -> Any:
        """Unigrams of the words of a head; only English ones."""
        if self.lang != "en":
            return None
        texts = perplexities.texts(self.data, "train").items()
        train = [file for name, file in texts if name not in perplexities.NEVER_TRAINED_ON]
        return self.lm(head, self.vocab).count(train, 200 if self.quick else 200_000)

    def predict(self, head: str, text: Path, n_words: int) -> dict[str, float]:
        n_words = WORDS if self.quick else n_words
        return self.lm(head, self.vocab).measure(text, n_words, self.counted(head))


def perplexity(setup: Setup) -> Iterator[Job]:
    """Of whole texts, with the larger head if there is one; none without a head."""
    has_head = find_weights(setup.head).has_head()
    for name, file in perplexities.texts(setup.data, "valid", setup.lang).items():
        if has_head and (setup.lang != "en" or name in tables.REGISTERS.values()):
            yield Job({"text": name}, "head", partial(setup.predict, setup.head, file, 0))


def registers(setup: Setup) -> Iterator[Job]:
    """20,000 words of each register, with the weights' own head."""
    if setup.lang == "en" and find_weights(setup.weights).has_head():
        for name, file in perplexities.texts(setup.data, "valid").items():
            measure = partial(setup.predict, setup.weights, file, 20_000)
            yield Job({"register": name}, "own head", measure)


def minimal_pairs(setup: Setup) -> Iterator[Job]:
    has_head = find_weights(setup.weights).has_head()
    if setup.lang == "en" and has_head and (setup.data / "blimp").exists():
        share = SHARE if setup.quick else 1.0
        yield Job(
            {"pairs": "all"}, "own head",
            lambda: blimp.measure(setup.lm(setup.weights), setup.data, share),
        )  # fmt: skip


def layers(setup: Setup) -> Iterator[Job]:
    if setup.lang == "en":
        for seed, name in product(setup.seeds, probes.TASKS):
            measure = partial(one_seed, setup, name, seed)
            yield Job({"task": name, "seed": seed}, "bilm", measure)
            if (embedded := setup.files().get("embedded")) is not None:
                unit = {"task": name, "model": "MiniLM-L6", "seed": seed}
                yield Job(unit, "", partial(one_seed, setup, name, seed, embedded))


def one_seed(setup: Setup, name: str, seed: int, embedded: Path | None = None) -> dict[str, float]:
    layers = setup.layers if embedded is None else probes.Embeddings(embedded, "minilm")
    found = probes.measure(layers, setup.data, name, layers.features, [seed])
    return {feature: score for feature, [score] in found.items()}


def trained(setup: Setup, units: Iterator[Unit]) -> Iterator[Job]:
    for unit in units:
        arm, files = ARMS[unit["arm"]], setup.files(unit["task"])
        measure = partial(
            downstream.measure, TASKS[unit["task"]], unit["size"], arm, unit["seed"], setup.data,
            files, setup.weights, setup.max_steps,
        )  # fmt: skip
        yield Job(unit, "" if arm.elmo is None else "bilm", measure, downstream.PART)


def tasks(setup: Setup) -> Iterator[Job]:
    """What users choose from, with the seeds of the command line."""
    arms = [WITHOUT, MIX, *(name for name, arm in ARMS.items() if arm.needs not in ("", "adapted"))]
    names = [n for n in setup.tasks if TASKS[n].factory != "textcat" or setup.lang != "en"]
    for seed in setup.seeds:  # all of the first one first
        yield from trained(setup, downstream.units(names, arms, [], [seed], setup.files()))
        small = [n for n in setup.tasks if TASKS[n].factory in ("tagger", "parser")]
        for name in small:
            size = next(iter(TASKS[name].steps))
            yield from trained(setup, downstream.units([name], [BOTH], [size], [seed]))
        recipes = {"ko": tables.KOREAN}.get(setup.lang, {})
        for name, size, arm in recipes.values():
            yield from trained(setup, downstream.units([name], [arm], [size], [seed]))


def arms(setup: Setup) -> Iterator[Job]:
    """Which layers, and where, by one seed; the learned mix and its alternatives by five."""
    if setup.lang == "en":
        three_times = "HashEmbedCNN, 3 × the steps"
        for task, size in tables.COMPARED_MIXES.items():
            names = [n for n in tables.ARMS.values() if task == "tagger" or n not in TAGGER_ONLY]
            names += [] if task == "ner" else [three_times]
            yield from trained(setup, downstream.units([task], names, [size], [0], setup.files()))
        names, seeds = [MIX, *tables.INSTEAD_OF_MIX.values()], tables.PAIRED_SEEDS
        for task, size in tables.COMPARED_MIXES.items():
            yield from trained(setup, downstream.units([task], names, [size], seeds))


def labels(setup: Setup) -> Iterator[Job]:
    """The learning curve of a tagger."""
    if setup.lang == "en":
        sizes = ["1%", "3%", "10%", "30%", "all"]
        yield from trained(setup, downstream.units(["tagger"], [WITHOUT, MIX], sizes, [0]))


def settings(setup: Setup) -> Iterator[Job]:
    """The listener's, on the dev set."""
    if setup.lang == "en":
        task, size = TASKS["tagger"], next(iter(TASKS["tagger"].steps))
        for name, arm in SETTINGS.items():
            measure = partial(
                downstream.measure, task, size, arm, 0, setup.data, {}, setup.weights,
                setup.max_steps, "dev",
            )  # fmt: skip
            unit = {"task": "tagger", "setting": name, "seed": 0}
            yield Job(unit, "" if arm.elmo is None else "bilm", measure)


def typos(setup: Setup) -> Iterator[Job]:
    if setup.lang == "en":
        for name in (WITHOUT, MIX):
            measure = partial(
                noise.measure, setup.data, ARMS[name], 0, setup.weights, setup.max_steps
            )
            yield Job({"arm": name, "seed": 0}, "bilm" if name == MIX else "", measure)


def texts(setup: Setup) -> Iterator[Job]:
    """Logistic regressions on the means of texts, and on counted words; and spaCy's classifiers."""
    for name, seed in product(setup.tasks, setup.seeds):
        if TASKS[name].factory == "textcat":
            measure = partial(text_means.measure, setup.weights, setup.data, name, seed)
            yield Job({"task": name, "seed": seed}, "bilm", measure)
            if setup.lang == "en" and (embedded := setup.files().get("embedded")) is not None:
                unit = {"task": name, "model": "MiniLM-L6", "seed": seed}
                yield Job(unit, "", partial(measure, embedded))
            size = next(iter(TASKS[name].steps))
            classifiers = [ENSEMBLE, LINEAR] if setup.lang == "en" else []
            yield from trained(setup, downstream.units([name], classifiers, [size], [seed]))


def similar(setup: Setup) -> Iterator[Job]:
    """The STS benchmark, WiC and CoarseWSD-20."""
    if setup.lang == "en":
        most = MOST if setup.quick else None
        for name in ("sentences", "in_context", "senses"):
            function = getattr(similarity, name)
            yield Job({"set": name}, "bilm", lambda f=function: f(setup.nlp, setup.data, most))


def senses(setup: Setup) -> Iterator[Job]:
    """SemCor's senses of all words, and sentences written for it."""
    if setup.lang == "en":
        most = MOST if setup.quick else None
        yield Job(
            {"set": "all words"}, "bilm",
            lambda: all_words.measure(setup.nlp, setup.data, most),
        )  # fmt: skip
    for lang, file in (("en", SENTENCES), ("ko", homonyms.KOREAN)):
        if lang == setup.lang:
            yield Job({"set": "sentences"}, "bilm", lambda f=file: homonyms.measure(setup.nlp, f))


PARTS: dict[str, Callable[[Setup], Iterator[Job]]] = {  # the cheap ones first
    "perplexity": perplexity,
    "registers": registers,
    "blimp": minimal_pairs,
    "probes": layers,
    "similarity": similar,
    "senses": senses,
    "texts": texts,
    "noise": typos,
    "labels": labels,
    "arms": arms,
    "tasks": tasks,
    "settings": settings,
}


def run(setup: Setup, results: Results, parts: list[str], only: str, listing: bool) -> None:
    """Measure what is missing of some parts, or list the units."""
    for name, job in ((part, job) for part in parts for job in PARTS[part](setup)):
        part, weights = job.part or name, setup.fingerprint(job.reads)
        title = f"{name}: {', '.join(map(str, job.unit.values()))}"
        if only not in title:
            continue
        results.read()
        found = results.find(part, job.unit, weights)
        if listing:
            print(title, "" if found is None else "✓")
        elif found is None:
            start = time.perf_counter()
            results.add(part, job.unit, weights, job.measure())
            print(title, f"{time.perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", default="en_sm", help="with statistics (default: en_sm)")
    parser.add_argument("--head", help="weights with a larger head (default: those of --weights)")
    parser.add_argument("--data", type=Path, default=Path("data"), help="see README.md")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", default="", help="units with this in their titles")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--lang", help="of the data (default: that of the weights' card)")
    parser.add_argument("--out", type=Path, help="default: results/NAME.jsonl")
    parser.add_argument("--quick", action="store_true", help="only try it")
    parser.add_argument("--list", action="store_true", help="only list the units")
    parser.add_argument("--write-docs", action="store_true", help="fill the tables of the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="default: docs/evidence.md")
    add_file_options(parser)
    arguments = parser.parse_args()
    setup = Setup(arguments)
    results = Results(arguments.out or tables.RESULTS / f"{Path(arguments.weights).name}.jsonl")
    if arguments.write_docs:
        write_docs(setup, results, arguments.page)
    else:
        run(setup, results, arguments.parts, arguments.only, arguments.list)


def write_docs(setup: Setup, results: Results, page: Path) -> None:
    """Drop the records of other weights, fill the tables that there are records for, and draw the
    pictures that stand beside the page."""
    weights = fingerprint(setup.weights)
    results.keep(weights)
    text, missing = tables.fill(page.read_text(encoding="utf-8"), results, weights)
    page.write_text(text, encoding="utf-8")
    if (languages := page.with_name("languages.md")).exists():
        text = tables.fill_languages(languages.read_text(encoding="utf-8"))
        languages.write_text(text, encoding="utf-8")
    for name, what in missing.items():
        print(f"The table {name} stays as it is: {what}")
    images = page.parent / "images"
    if not images.exists() or setup.lang != "en":
        return
    trained = [{**unit, **found} for unit, found in results.of(downstream.PART, weights)]
    if "labels" not in missing:
        curve = [r for r in trained if r["seed"] == 0 and r["arm"] in (WITHOUT, MIX)]
        downstream.draw_learning(curve, "tagger", images / "curves.svg")
    if "tasks" not in missing:
        downstream.draw_learned(downstream.learned(trained), images / "mixes.svg")


if __name__ == "__main__":
    main()
