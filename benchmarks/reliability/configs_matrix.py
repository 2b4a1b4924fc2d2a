"""Does `elmo add` make a config that trains, of whatever `spacy init config` writes?

    python benchmarks/reliability/configs_matrix.py OUT [--langs en de] [--weights WEIGHTS]

Every trainable component alone, every pair, and all of them at once; optimized for efficiency and
for accuracy; in each language: `init config`, `elmo add`, `debug config`, two steps of `train`, and
a text read by the pipeline that it saves. All run in this process. Accuracy means static vectors,
which are not installed, so it is run with ``--paths.vectors null``. Efficient text classifiers
count words: alone, they cannot learn from ELMo, and have to be refused. spaCy's config for Korean
wants a tokenizer that needs other packages: it is that of ``xx`` here, with ``--nlp.lang ko``.

OUT gets a line of JSON for each case; those that are there are not run again. In the end, all that
failed are printed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.cli.debug_config import debug_config
from spacy.cli.init_config import init_config
from spacy.cli.train import train
from spacy.kb import InMemoryLookupKB
from spacy.tokens import Doc, DocBin, Span
from spacy.util import load_config
from thinc.api import Config

from spacy_elmo import add_elmo

COMPONENTS = (
    "tagger", "morphologizer", "trainable_lemmatizer", "senter", "parser", "ner", "span_finder",
    "spancat", "spancat_singlelabel", "textcat", "textcat_multilabel", "entity_linker",
)  # fmt: skip
BAGS_OF_WORDS = {"textcat", "textcat_multilabel"}
LANGS = ("en", "de", "xx", "ko")
SENTENCES = ("Anna swims .", "Dogs bark at Anna .", "Hunde bellen laut .", "안나 는 서울 에 산다 .")


class Case(NamedTuple):
    """A config: of which components, optimized for what, in which language."""

    components: tuple[str, ...]
    optimize: str
    lang: str

    @property
    def name(self) -> str:
        return f"{'+'.join(self.components)} {self.optimize} {self.lang}"

    @property
    def counts_words(self) -> bool:
        """Whether no component has token vectors."""
        return self.optimize == "efficiency" and {*self.components} <= BAGS_OF_WORDS


def cases(langs: tuple[str, ...]) -> Iterator[Case]:
    sets: list[tuple[str, ...]] = [(name,) for name in COMPONENTS]
    sets += [COMPONENTS, *itertools.combinations(COMPONENTS, 2)]
    for components, optimize, lang in itertools.product(sets, ("efficiency", "accuracy"), langs):
        yield Case(components, optimize, lang)


def write_data(folder: Path) -> None:
    """Annotated sentences of made-up labels, and a knowledge base of one entity."""
    nlp = spacy.blank("xx")
    docs = [annotated(nlp.vocab, *pair) for pair in itertools.permutations(SENTENCES, 2)]
    DocBin(docs=docs, store_user_data=True).to_disk(folder / "data.spacy")
    kb = InMemoryLookupKB(nlp.vocab, entity_vector_length=64)
    kb.add_entity(entity="Q1", freq=1, entity_vector=[1.0] * 64)
    kb.add_alias(alias="Anna", entities=["Q1"], probabilities=[1.0])
    kb.to_disk(folder / "kb")


def annotated(vocab: Any, first: str, second: str) -> Doc:
    """Two sentences with every annotation that a component learns from."""
    sentences = [first.split(), second.split()]
    words = [word for sentence in sentences for word in sentence]
    start = len(sentences[0])
    heads = [
        1 if i < start else start + 1 for i in range(len(words))
    ]  # the second word is the root
    tags = ["A" if len(word) % 2 else "B" for word in words]
    doc = Doc(
        vocab,
        words=words,
        heads=heads,
        deps=[
            "ROOT" if head == i else "nsubj" if head > i else "obj" for i, head in enumerate(heads)
        ],
        tags=tags,
        pos=["NOUN" if tag == "A" else "VERB" for tag in tags],
        morphs=["Number=Sing" if tag == "A" else "" for tag in tags],
        lemmas=[word.lower() for word in words],
    )
    people = [i for i, word in enumerate(words) if word == "Anna"]
    doc.ents = [Span(doc, i, i + 1, "PERSON", kb_id="Q1") for i in people]
    doc.spans["sc"] = [Span(doc, 0, 2, "START")]
    doc.cats = {"DOGS": float("Dogs" in words), "OTHER": float("Dogs" not in words)}
    return doc


def make_plain(case: Case, data: Path) -> Config:
    """What `init config` writes; an entity linker also needs sentences and a knowledge base."""
    names = list(case.components)
    linked = "entity_linker" in names
    if linked and not {"parser", "senter"} & {*names}:
        names.insert(0, "sentencizer")
    lang = "xx" if case.lang == "ko" else case.lang
    config = init_config(lang=lang, pipeline=names, optimize=case.optimize)
    if "parser" in names:
        config["components"]["parser"]["min_action_freq"] = 1
    if linked:
        splitter = next(name for name in ("sentencizer", "senter", "parser") if name in names)
        config["training"]["annotating_components"] = [splitter]
        loader = {"@misc": "spacy.KBFromFile.v1", "kb_path": str(data / "kb")}
        config["initialize"]["components"]["entity_linker"] = {"kb_loader": loader}
    return config


def check_refused(config: Config) -> None:
    try:
        add_elmo(config)
    except ValueError as error:
        if "No component can learn from ELMo" in str(error):
            return
        raise
    raise AssertionError("A config without token vectors was not refused.")


def run_case(case: Case, data: Path, weights: str) -> None:
    """All commands for a case, by the functions behind them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_plain(case, data).to_disk(folder / "plain.cfg")
        given = {"nlp.lang": case.lang, "paths.vectors": None}
        plain = load_config(folder / "plain.cfg", given)
        if case.counts_words:
            check_refused(plain)
            return
        config = add_elmo(plain, weights=weights)
        config.to_disk(folder / "config.cfg")
        paths = {f"paths.{split}": str(data / "data.spacy") for split in ("train", "dev")}
        debug_config(folder / "config.cfg", overrides=paths)
        steps = {"training.max_steps": 2, "training.eval_frequency": 2}
        train(folder / "config.cfg", folder / "out", overrides=paths | steps)
        nlp = spacy.load(folder / "out" / "model-last")
        for doc in nlp.pipe(["Anna swims . Dogs bark .", ""]):
            assert doc.tensor.shape[0] == len(doc)


def main() -> None:
    parser = argparse.ArgumentParser(description="Does `elmo add` make configs that train?")
    parser.add_argument("out", type=Path)
    parser.add_argument("--langs", nargs="+", choices=LANGS, default=list(LANGS))
    parser.add_argument("--weights", default="en_sm", help="of the biLM (default: en_sm)")
    arguments = parser.parse_args()
    lines = arguments.out.read_text("utf-8").splitlines() if arguments.out.exists() else []
    results: dict[str, str | None] = {
        line["case"]: line["error"] for line in map(json.loads, lines)
    }
    with tempfile.TemporaryDirectory() as data:
        write_data(Path(data))
        for case in cases(tuple(arguments.langs)):
            if case.name in results:
                continue
            start, error = time.perf_counter(), None
            try:
                with redirect_stdout(StringIO()):
                    run_case(case, Path(data), arguments.weights)
            except (Exception, SystemExit) as failure:
                error = f"{type(failure).__name__}: {failure}"
            results[case.name] = error
            seconds = time.perf_counter() - start
            line = json.dumps({"case": case.name, "error": error, "seconds": round(seconds, 1)})
            with arguments.out.open("a", encoding="utf-8") as file:
                print(line, file=file)
    failures = {name: error for name, error in results.items() if error is not None}
    print(f"{len(results) - len(failures)} of {len(results)} cases end as they should.")
    if failures:
        print("\n| config | error |\n|---|---|")
        for name, error in failures.items():
            print(f"| {name} | {' '.join(error.split())} |")


if __name__ == "__main__":
    main()
