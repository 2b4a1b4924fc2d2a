"""The tables of docs/evidence.md and docs/languages.md, written from a file of results.

Each table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``. The best value of a row or
column is bold; with ELMo and without it, the better one if they differ by more than seeds do.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import recipes
import six_tasks
from arms import BOTH, ENSEMBLE, LINEAR, MIX, WITHOUT
from results import Results

MARKED = re.compile(r"^(<!-- table: (\S+) -->\n)(.*?)^(?=<!-- end -->$)", re.M | re.S)
RESULTS = Path(__file__).parents[1] / "results"
SPEED, LANGUAGES = RESULTS / "speed.json", RESULTS / "languages.jsonl"
FACTS = Path(__file__).parents[2] / "project" / "weights" / "languages.json"
EN_MD = "en_md", "be1353e2d81a"  # name and fingerprint
RECIPES, SIX_TASKS = RESULTS / "recipes.jsonl", RESULTS / "six_tasks.jsonl"
SIX_TASKS_OF = "en_sm-0.2.0", "6521b5a71ccc"  # name and fingerprint: these take days
NONE = "–"

TASKS = {  # label: task, size, arm with ELMo
    "tagger, 500 sentences": ("tagger", 500, BOTH),
    "tagger, all 12,544": ("tagger", "all", MIX),
    "parser, 500 sentences": ("parser", 500, BOTH),
    "parser, all 12,544": ("parser", "all", MIX),
    "NER": ("ner", "all", MIX),
}
ADDED = {  # label: task of `recipes.py`, score
    "tagger, 500 sentences": ("English, 500", "tag_acc"),
    "parser, 500 sentences": ("English, 500", "dep_las"),
    "tagger, all 12,544": ("English, 12544", "tag_acc"),
    "parser, all 12,544": ("English, 12544", "dep_las"),
    "NER, WNUT-17": ("names", "ents_f"),
}
PEERS = {  # title: arm, name in the results of speeds
    "nothing": (WITHOUT, ""),
    "static vectors": ("static vectors", ""),
    "`spacy pretrain`": ("HashEmbedCNN, pretrained", ""),
    "MiniLM-L6": ("MiniLM-L6", "MiniLM, PyTorch"),
    "`en_core_web_sm`": ("en_core_web_sm", "en_core_web_sm, its tok2vec"),
    "ELMo": ("", "ours, int8"),
}
ARMS = {
    "without ELMo": WITHOUT,
    "layer 0 alone (no context)": "ELMo, layer 0",
    "learned mix (λ = 0.001)": MIX,
    "… at the input and the output": BOTH,
    "… at the output alone": "ELMo, output",
    "learned mix, without a CNN": "ELMo, without a CNN",
    "learned mix, fine-tuned": "ELMo, fine-tuned",
    "learned mix, adapted to the task's text first": "ELMo, adapted",
}
COMPARED_MIXES: dict[str, int | str] = {"tagger": 500, "parser": 500, "ner": "all"}
TAGGER_ONLY = ("ELMo, output", "ELMo, without a CNN", "ELMo, fine-tuned")
REGISTERS = ("enwiki", "fiction-pd", "masc")  # whose whole texts are predicted
SHARES = ("1%", "3%", "10%", "30%", "all")  # of the labels
LANGS = {
    "de": "German", "pt": "Portuguese", "ro": "Romanian", "hu": "Hungarian", "uk": "Ukrainian",
    "sv": "Swedish", "ko": "Korean", "es": "Spanish", "fr": "French", "it": "Italian",
    "pl": "Polish", "cs": "Czech", "sl": "Slovenian", "sr": "Serbian", "ja": "Japanese",
}  # fmt: skip
LANGUAGE_TASKS = {"tagger": "tagger", "parser": "parser", "ner": "NER"}
LANGUAGE_ARMS = ("nothing", "static floret", "spacy pretrain", "ELMo")
NOTHING, *_, ELMO = LANGUAGE_ARMS
LanguageResults = dict[tuple[str, str, str], dict[str, list[Any]]]  # by language, text and arm
SENTENCES = 400  # labelled, that the page shows


class Missing(Exception):
    """There is no result for a cell."""


class Found:
    """Results of one biLM.

    Args:
        results: of several, perhaps.
        weights: its fingerprint.
    """

    def __init__(self, results: Results, weights: str):
        self.results, self.weights = results, weights

    def all(self, part: str, **unit: Any) -> dict[int | None, Any]:
        """What was found for a unit, by its seed (None if it has none), with the largest head.

        Raises:
            Missing: nothing.
        """
        found: dict[int | None, Any] = {}
        for each, value in self.results.of(part, self.weights):
            rest = {name: value for name, value in each.items() if name != "seed"}
            seed = each.get("seed")
            if rest == unit and size_of_head(value) >= size_of_head(found.get(seed)):
                found[seed] = value
        if len(found) > 1:
            found.pop(None, None)  # means of seeds that were not kept apart
        if not found:
            raise Missing(f"no result of {part}: {', '.join(map(str, unit.values()))}")
        return found

    def scores(
        self, task: str, size: int | str, arm: str, seeds: Collection[int] = range(3)
    ) -> dict[int, float]:
        found = self.all("tasks", task=task, size=size, arm=arm)
        return {seed: value["score"] for seed, value in found.items() if seed in seeds}

    def values(self, part: str, *path: str, **unit: Any) -> float:
        """The mean of the seeds of a value inside of what was found."""
        each = list(self.all(part, **unit).values())
        for name in path:
            each = [value[name] for value in each]
        return mean(each)


def size_of_head(found: Any) -> int:
    return found.get("vocabulary", 0) if isinstance(found, dict) else 0


Cell = float | str | None


def row(label: str, cells: Sequence[Cell], best: Callable[..., float] | None, digits: int) -> str:
    return f"| {label} | {' | '.join(format_cells(cells, best, digits))} |"


def format_cells(
    cells: Sequence[Cell], best: Callable[..., float] | None, digits: int
) -> list[str]:
    """The cells, those that `best` chooses in bold."""
    numbers = [f"{cell:.{digits}f}" for cell in cells if isinstance(cell, float)]
    top = f"{best(map(float, numbers)):.{digits}f}" if best and numbers else ""
    texts = [
        NONE if cell is None else f"{cell:.{digits}f}" if isinstance(cell, float) else cell
        for cell in cells
    ]
    return [f"**{text}**" if text == top else text for text in texts]


def columns(rows: dict[str, list[Cell]], digits: Sequence[int]) -> Iterator[str]:
    """Lines whose best value of each column is bold."""
    texts = [
        format_cells(column, max, n)
        for column, n in zip(zip(*rows.values(), strict=True), digits, strict=True)
    ]
    for label, cells in zip(rows, zip(*texts, strict=True), strict=True):
        yield f"| {label} | {' | '.join(cells)} |"


def head(*titles: str) -> list[str]:
    return [f"| {' | '.join(titles)} |".replace("|  |", "| |"), "|---" * len(titles) + "|"]


def added(found: Found) -> Iterator[str]:
    """What `elmo add` makes of spaCy's own config."""
    scores: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for unit, value in Results(RECIPES).of(recipes.PART, found.weights):
        if unit.get("split") == "test":
            scores[unit["task"], unit["arm"]].append(value["scores"])
    yield from head("", "`spacy init config`", "and `elmo add`", "error reduction")
    for label, (task, name) in ADDED.items():
        keys = [(task, arm) for arm in (recipes.WITHOUT, recipes.ADDED)]
        plain, elmo = ([each[name] for each in scores[key]] for key in keys)
        gain = reduction(plain, elmo)
        if gain == NONE:
            raise Missing(f"no result of {recipes.PART}: {task}, test")
        yield f"| {label} | {mean(plain):.2f} | **{mean(elmo):.2f}** | {gain} |"


def alternatives(found: Found) -> Iterator[str]:
    yield from head("", *PEERS)
    for label, (task, size, with_elmo) in TASKS.items():
        cells: list[Cell] = []
        for arm, _ in PEERS.values():
            try:
                cells.append(mean(found.scores(task, size, arm or with_elmo).values()))
            except Missing:
                cells.append(None)
        if cells[-1] is None:
            raise Missing(f"no result of tasks: {task}, {size}, {with_elmo}")
        yield row(label, cells, max, 2)
    speed = json.loads(SPEED.read_text(encoding="utf-8"))
    measured = speed["each at its best, 1 thread"]

    def fastest(name: str) -> int:
        start = name.split(",")[0]
        return max(side["words/s"] for n, side in measured.items() if n.startswith(start))

    for label, value in {
        "words a second, 1 thread": lambda n: f"{measured[n]['words/s']:,}",
        "… in its fastest form": lambda n: f"{fastest(n):,}",
        "size of the weights": lambda n: f"{measured[n]['weights (MB)']:.0f} MB",
        "memory of the process": lambda n: f"{measured[n]['memory (MB)']} MB",
    }.items():
        yield row(label, [value(n) if n else None for _, n in PEERS.values()], None, 0)


def models(found: Found) -> Iterator[str]:
    """`en_sm`, `en_md` and MiniLM: what they cost and what they reach."""
    name, weights = EN_MD
    both = found, Found(Results(RESULTS / f"{name}.jsonl"), weights)
    speed = json.loads(SPEED.read_text(encoding="utf-8"))
    beside, peers = speed["en_md beside en_sm"], speed["each at its best, 1 thread"]
    ours, minilm = peers["ours, int8"], peers["MiniLM, PyTorch"]
    part = beside["en_md"]["words/s"] / beside["en_sm"]["words/s"]
    yield from head("", "`en_sm`", "`en_md`", "MiniLM-L6")
    size = "weights (MB)"
    yield row("weights, MB", [side[size] for side in (ours, beside["en_md"], minilm)], None, 0)
    yield row("speed, one core", [1.0, part, minilm["words/s"] / ours["words/s"]], None, 2)
    rows: dict[str, Callable[[Found], float]] = {
        "senses of all words": lambda of: of.values("senses", "all", "occurrence", set="all words"),
        "CoarseWSD-20": lambda of: 100 * of.values("similarity", "occurrence", set="senses"),
        "sentences, STS": lambda of: 100 * of.values("similarity", "compared", set="sentences"),
        "BLiMP": lambda of: of.values("blimp", "all", "mean", "summed", pairs="all"),
        "perplexity, Wikipedia": lambda of: of.values("perplexity", "mean", text="enwiki"),
    }
    for label in ("tagger, 500 sentences", "parser, 500 sentences", "NER"):
        task, size, arm = TASKS[label]
        cells = [mean(each.scores(task, size, arm).values()) for each in both]
        other = mean(found.scores(task, size, "MiniLM-L6").values())
        yield row(label, [*cells, other], max, 1)
    for label, get in rows.items():
        best = min if label.startswith("perplexity") else max
        yield row(label, [*map(get, both), None], best, 1)


def learning_curve(found: Found) -> Iterator[str]:
    yield from head("", *SHARES)
    for label, arm in (("HashEmbedCNN", WITHOUT), ("with ELMo", MIX)):
        cells = [found.scores("tagger", size, arm)[0] for size in SHARES]
        yield row(label, [f"**{c:.2f}**" if arm == MIX else c for c in cells], None, 2)


def arms(found: Found) -> Iterator[str]:
    yield from head("", "tagger", "parser", "NER")
    rows: dict[str, list[Cell]] = {}
    for label, arm in ARMS.items():
        rows[label] = []
        for task, size in COMPARED_MIXES.items():
            is_left_out = arm in TAGGER_ONLY and task != "tagger"
            rows[label].append(None if is_left_out else found.scores(task, size, arm)[0])
    yield from columns(rows, (2, 2, 2))


def paper_tasks(found: Found) -> Iterator[str]:
    """The six tasks of the paper, by `six_tasks.py`; of earlier weights if it says so."""
    title, weights = SIX_TASKS_OF
    measured = six_tasks.measured(Results(SIX_TASKS), weights)
    yield from six_tasks.lines(measured, ["without", "input", "input and output"])
    if weights != found.weights:
        yield from ("", f"*Weights: `{title}`.*")


def senses(found: Found) -> Iterator[str]:
    def percent(part: str, name: str, *path: str) -> float:
        return (100 if part == "similarity" else 1) * found.values(part, *path, set=name)

    def demo(name: str) -> float:
        return found.all("senses", set="sentences")[None]["all"][1][name]

    rows: dict[str, list[Cell]] = {}
    for label, vectors, in_context, written in (
        ("layer 0", "layer 0, raw", True, None),
        ("layer 1", "layer 1, raw", True, None),
        ("layer 2", "layer 2, raw", True, "layer 2"),
        ("`token.vector`", "compared", True, None),
        ("what `elmo senses` compares", "occurrence", False, "`elmo senses`"),
    ):
        rows[label] = [
            percent("similarity", "senses", vectors),
            percent("similarity", "in_context", vectors) if in_context else None,
            percent("senses", "all words", "all", vectors) if label != "layer 0" else None,
            demo(written) if written else None,
        ]
    frequent = "most frequent sense"
    first = [
        f"{percent('similarity', 'senses', frequent):.1f}",
        "50",
        f"{percent('senses', 'all words', 'all', frequent):.1f}",
        f"{demo('random'):.0f}",
    ]
    yield from head("", "CoarseWSD-20", "WiC", "all words", "demo")
    yield row("most frequent sense; chance", first, None, 0)
    yield from columns(rows, (1, 1, 1, 0))


def similarity(found: Found) -> Iterator[str]:
    titles = {
        "counted words": "counted words",
        "… weighted by rarity": "counted words, tf-idf",
        "layer 0, mean": "layer 0, raw",
        "layer 1": "layer 1, raw",
        "layer 2": "layer 2, raw",
        "mean of the layers": "mean of layers, raw",
        "`doc.similarity`": "compared",
    }
    yield from head(*titles)
    cells = [100 * found.values("similarity", name, set="sentences") for name in titles.values()]
    yield row("", cells, max, 1).removeprefix("|  ")


def texts(found: Found) -> Iterator[str]:
    sets = {"textcat": 1000, "subjectivity": 500, "intents": 770, "requests": 1500}
    rows: dict[str, list[Cell]] = {}
    minilm = {"model": "MiniLM-L6"}
    for label, name, model in (
        ("tf-idf", "tf-idf", {}),
        ("the means of ELMo", "all layers", {}),
        ("tf-idf and the means of ELMo", "all layers and tf-idf", {}),
        ("the means of MiniLM-L6", "all layers", minilm),
    ):
        rows[f"regression on {label}"] = []
        for task in sets:
            each = found.all("texts", task=task, **model).values()
            score = mean(pair[1] for value in each for pair in value[name])
            rows[f"regression on {label}"].append(score)
    for label, arm in (
        ("spaCy's `TextCatEnsemble`", ENSEMBLE),
        ("ELMo: `TextCatLinear`", LINEAR),
    ):
        rows[label] = [mean(found.scores(*each, arm).values()) for each in sets.items()]
    yield from head("", "SST-2", "SUBJ", "Banking77", "CLINC150")
    yield from columns(rows, (1, 1, 1, 1))


def own_text(lang: str) -> str:
    """The text that the project has for a language: all but what must not be in weights."""
    return "novels" if lang in ("de", "es") else "both"


def language_results(path: Path) -> LanguageResults:
    """Scores of each task, a list of all seeds, after the shortest pretraining."""
    found: LanguageResults = {}
    shortest: dict[tuple[str, str, str], float] = {}
    for unit, value in Results(path).of("languages", ""):
        lasted = unit.get("minutes", 0.0)  # nothing, and vectors, are the same for any
        if unit["sentences"] != SENTENCES or {"words", "bilm_seed", "settings"} & set(unit):
            continue
        key = unit["lang"], unit["text"], unit["arm"]
        if lasted > shortest.setdefault(key, lasted):
            continue
        if lasted < shortest[key]:
            found.pop(key)
            shortest[key] = lasted
        known = found.setdefault(key, {})
        for name, each in value["scores"].items():
            known.setdefault(name, []).append(each)
    return found


def languages(path: Path = LANGUAGES) -> Iterator[str]:
    """A row for each language, on the project's text: means of the seeds without ELMo and with it,
    and the error reduction."""
    found = language_results(path)
    yield from head("", *LANGUAGE_TASKS.values())
    for lang, language in LANGS.items():
        cells = []
        for task in LANGUAGE_TASKS:
            keys = [(lang, own_text(lang), arm) for arm in (NOTHING, ELMO)]
            plain, elmo = (found.get(key, {}).get(task, []) for key in keys)
            gain = reduction(plain, elmo)
            if gain != NONE:
                gain = f"{mean(plain):.1f} → **{mean(elmo):.1f}**, {gain}"
            cells.append(gain)
        if set(cells) != {NONE}:
            yield f"| {language} | {' | '.join(cells)} |"


def language_weights(facts: Path = FACTS) -> Iterator[str]:
    """A row for each of the project's weights: how much text it has read, and the treebank of the
    page of evidence."""
    yield from head("", "million words", "treebank")
    for lang, about in sorted(json.loads(facts.read_text(encoding="utf-8")).items()):
        words = sum(float(each["words"].removesuffix(" M")) for each in about["sources"])
        yield f"| `{lang}_sm` | {words:.1f} | {about['treebank']} |"


def reduction(plain: list[float], elmo: list[float]) -> str:
    """The error reduction: the share of the errors that are gone."""
    if not plain or not elmo:
        return NONE
    before, after = mean(plain), mean(elmo)
    return f"{100 * (after - before) / (100 - before):.0f}%".replace("-", "−")


TABLES: dict[str, Callable[[Found], Iterator[str]]] = {
    "added": added,
    "labels": learning_curve,
    "alternatives": alternatives,
    "models": models,
    "texts": texts,
    "languages": lambda found: languages(),
    "settings": arms,
    "recipes": lambda found: recipes.lines(Results(RECIPES)),
    "senses": senses,
    "similarity": similarity,
    "six-tasks": paper_tasks,
}


def fill(page: str, results: Results, weights: str) -> tuple[str, dict[str, str]]:
    """The page with the tables of a biLM, and what is missing for those that stay as they are.

    Args:
        page: in Markdown.
        results: with those of the biLM.
        weights: its fingerprint.
    """
    missing: dict[str, str] = {}

    def table(match: re.Match[str]) -> str:
        start, name, text = match.groups()
        if name in TABLES:
            try:
                text = "".join(f"{line}\n" for line in TABLES[name](Found(results, weights)))
            except Missing as error:
                missing[name] = str(error)
        return start + text

    return MARKED.sub(table, page), missing


def fill_languages(page: str) -> str:
    """The page on languages with its table."""
    lines = "".join(f"{line}\n" for line in language_weights())
    return MARKED.sub(lambda match: match[1] + lines, page)
