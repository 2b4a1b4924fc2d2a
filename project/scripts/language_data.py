"""The data of a language: its raw text, what that tells, and a few labelled sentences."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from corpora import no_text, own_docs, write_corpus, write_texts
from datasets import (
    SPLITS,
    MakeDoc,
    find_file,
    make_doc,
    make_parsed,
    read_paragraphs,
    read_rows,
    read_trees,
    tasks_by_kind,
)
from sentences import raw_text
from sizes import Size, find_size, thin_out
from spacy.language import Language
from spacy.tokens import Doc
from text_facts import FACTS, read_facts, remarks, stuck_dashes, unseen_letters
from wasabi import msg

from spacy_elmo.cli.options import report_errors
from spacy_elmo.text import readers
from spacy_elmo.text.files import open_text, paragraphs_in
from spacy_elmo.text.readers import split_text
from spacy_elmo.util.files import naming_errors

SAMPLE = 5_000  # paragraphs whose facts are read
HELD_OUT = 50  # of so many paragraphs of a user's own texts, one is held out
PATTERNS = {"ud": "*{}*.conllu*", "ner": "*{}*.iob*"}  # of a user's own labelled sentences


@report_errors("Cannot read the data")
def main(
    run: Path,
    lang: str = "en",
    size: str = "full",
    local: str = "",
    text: str = "",
    conllu: str = "",
    sentences: Annotated[int, typer.Option(min=1)] = 400,
    tasks: str = "tagger,parser,ner",
    tokenizer: str = readers.BY_RULES,
) -> None:
    """Write RUN/text/{train,dev}.txt, RUN/language.json and RUN/corpus/KIND/SPLIT.spacy."""
    nlp, limits = find_language(lang, tokenizer), find_size(size)
    kinds = tasks_by_kind(tasks)
    own = size == "tiny" and lang == "en" and not (local or text or conllu)

    def read(split: str) -> Iterator[str]:
        if text:
            return read_own_text(text, split)
        return raw_text(split) if own else read_paragraphs(split, lang, local)

    for split in write_texts(run / "text", read, limits.paragraphs):
        if not text:
            raise ValueError(no_text(split))
        raise ValueError(
            f"There is no text to {'train on' if split == 'train' else 'hold out'}: of the "
            f"lines that have text, each a paragraph, every {HELD_OUT}th is held out."
        )
    first = list(islice(paragraphs_in(run / "text" / "train.txt"), SAMPLE))
    sample = list(split_text(nlp, first))
    facts = read_facts(sample)
    for line in [*remarks(facts, lang, tokenizer), *stuck_dashes(first)]:
        msg.info(line)
    found = {**facts._asdict(), "max_characters_per_token": facts.max_characters_per_token}
    (run / FACTS).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for kind, chosen in kinds.items():
        folder = run / "corpus" / kind
        shutil.rmtree(folder, ignore_errors=True)  # of other files, perhaps
        if own:
            parts = own_docs(nlp)
        else:
            files = find_labelled(kind, conllu, lang, local)
            if not files:
                msg.info(f"{kind}: no data")
                continue
            parts = labelled_docs(nlp, kind, files, sentences, limits)
        write_corpus(folder, chosen, parts)
        words = (token.text for doc in parts["train"] for token in doc)
        for line in unseen_letters(words, itertools.chain.from_iterable(sample)):
            msg.warn(line)


def read_own_text(files: str, split: str) -> Iterator[str]:
    """The paragraphs of files, with commas between their names; every fiftieth is held out.

    Raises:
        ValueError: there is no such file, or it cannot be read.
    """
    paths = [Path(name.strip()) for name in files.split(",")]
    for path in paths:
        if not path.is_file():
            raise ValueError(f"There is no text file {path.resolve()} (--vars.text).")
    every = itertools.chain.from_iterable(map(paragraphs_in, paths))
    for i, paragraph in enumerate(each for each in every if each.strip()):
        if (i % HELD_OUT == HELD_OUT - 1) == (split == "dev"):
            yield paragraph


def find_language(lang: str, tokenizer: str) -> Language:
    """An empty pipeline of a language.

    Raises:
        ValueError: spaCy has none of this code.
    """
    try:
        nlp = readers.blank(lang, tokenizer)
    except ValueError as error:
        if lang in str(error) and "E048" in str(error):
            raise ValueError(
                f"spaCy has no language '{lang}'. Give its two-letter code, or --vars.lang xx for "
                f"a language that spaCy has no rules for."
            ) from None
        raise
    if nlp.lang != lang:
        raise ValueError(f"spaCy's code for '{lang}' is '{nlp.lang}': give --vars.lang {nlp.lang}.")
    return nlp


def find_labelled(kind: str, conllu: str, lang: str, local: str) -> dict[str, list[Path]]:
    """The files of a kind by split; none if there are no named entities.

    Raises:
        ValueError: there is no treebank, or a training or a test set is missing, or a file may be
            of two splits.
    """
    if not conllu:
        files: dict[str, list[Path]] = {}
        missing: list[ValueError] = []
        for split in SPLITS:
            try:
                if path := find_file(kind, split, lang, local):
                    files[split] = [path]
            except ValueError as error:
                missing.append(error)
        if missing and (files or kind == "ud"):
            raise ValueError(f"{missing[0]} Name your own with --vars.conllu FOLDER.")
        return files
    found = {
        split: paths
        for split in SPLITS
        if (paths := sorted(Path(conllu).glob(PATTERNS[kind].format(split))))
    }
    if (found or kind == "ud") and not {"train", "test"} <= set(found):
        names = " and ".join(PATTERNS[kind].format(split) for split in ("train", "test"))
        raise ValueError(f"In {Path(conllu).resolve()} (--vars.conllu), there must be {names}.")
    for one, other in itertools.combinations(found, 2):
        for path in set(found[one]).intersection(found[other]):
            raise ValueError(
                f"The name of {path.resolve()} (--vars.conllu) has both '{one}' and '{other}' in "
                f"it: give it another one."
            )
    return found


def labelled_docs(
    nlp: Language, kind: str, files: dict[str, list[Path]], n_train: int, limits: Size
) -> dict[str, list[Doc]]:
    """Some sentences to learn from, evenly spaced; without a dev set, the others are that."""
    rows = {
        split: [row for path in paths for row in read_sentences(kind, path)]
        for split, paths in files.items()
    }
    every = rows["train"]
    for split, each in rows.items():
        if not each:
            raise ValueError(f"There is no sentence in {', '.join(map(str, files[split]))}.")
    rows["train"] = thin_out(every, min(n_train, limits.train or n_train))
    if "dev" not in rows:
        chosen = set(map(id, rows["train"]))
        # Without any others, those learned from: nothing is selected by it.
        rows["dev"] = [row for row in every if id(row) not in chosen] or every
    for split in ("dev", "test"):
        rows[split] = thin_out(rows[split], getattr(limits, split))
    return {split: [make(nlp) for make in rows[split]] for split in SPLITS}


def read_sentences(kind: str, path: Path) -> list[MakeDoc]:
    """The labelled sentences of a file."""
    if ".conllu" not in path.suffixes:
        return read_rows(kind, path)
    with naming_errors("the treebank", path), open_text(path, "utf-8-sig", "") as file:
        return [partial(make_doc, make_parsed, path, tree) for tree in read_trees(file, 1)]


if __name__ == "__main__":
    typer.run(main)
