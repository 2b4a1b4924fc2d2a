"""Where the data of each language are, and how their formats are read.

Downloads, and files of your own, are ``assets/LANG/KIND.SPLIT.SUFFIX``, with the kinds ud, ner and
textcat, and ``assets/LANG/text.SUFFIX`` or several ``text.NAME.SUFFIX`` for the raw text. Without a
dev set, every tenth text of the training set is taken for it. Files may be compressed with xz, and
.spacy files are read too.
Where there is no split "train", one called "few" stands for it: a treebank's dev set.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training.converters import conllu_to_docs
from spacy.util import filter_spans
from spacy.vocab import Vocab
from text_facts import STUCK_DASH

from spacy_elmo.text.files import format_of, open_text, texts_in
from spacy_elmo.util.files import naming_errors

MakeDoc = Callable[[Language], Doc]

TASKS = {"tagger": "ud", "parser": "ud", "ner": "ner", "textcat": "textcat"}
LEAST_LABELS = {"tagger": 2, "textcat": 2}  # in training, where it is not one
SPLITS = ("train", "dev", "test")
TEI = "{http://www.tei-c.org/ns/1.0}"
LEAST_WORDS = 8  # of a line of raw text, which is else a heading or a caption
SENTENCES = 5  # of a treebank in each Doc, so that a parser learns where they end
TAG = re.compile(r"O|[BI]-\S.*")
NO_WORD = re.compile(r"\d+[-.]\d+")  # numbers of several words together, and of empty nodes
# What scans leave in novels: words divided at ends of lines, and signs of Windows as control codes.
DIVIDED = re.compile(r"(?<=\w)[\xad¬]\s?(?=\w)|\xad")
CONTROL = re.compile(r"[\x80-\x9f]")

# The files of a local folder, instead of downloads.
LOCAL: dict[str, dict[str, Any]] = {
    "en": {
        "ud": "ud/UD_English-EWT/{}.conllu.xz",
        "ner": "ner/wnut17/{}.iob.xz",
        "textcat": "textcat/banking77/{}.jsonl.xz",
        "text": ["lm/enwiki/{}.txt.xz"],
    },
    "ko": {
        "ud": "ud/UD_Korean-GSD/{}.conllu.xz",
        "ner": "ner/klue-ner-dev-resplit/{}.jsonl.xz",
        "textcat": "textcat/nsmc/{}.jsonl.xz",
        "text": ["lm/nsmc-reviews/{}.txt.xz", "lm/kowiki/{}.txt.xz"],
    },
}
for _lang in ("de", "hu", "pt", "ro", "sv", "uk"):
    # Modern German is court decisions, whose licence is given in two ways.
    _texts = ["novels"] if _lang == "de" else ["novels", "modern"]
    LOCAL[_lang] = {
        "ud": f"languages/{_lang}/ud.{{}}.conllu.xz",
        "ner": f"languages/{_lang}/ner.{{}}.iob2.xz",
        "text": [f"languages/{_lang}/{name}.{{}}.txt.xz" for name in _texts],
    }


def find_tasks(names: str) -> list[str]:
    """The tasks in a list with commas, each once.

    Raises:
        ValueError: there is none of a name.
    """
    tasks = list(dict.fromkeys(name.strip() for name in names.split(",")))
    for task in tasks:
        if task not in TASKS:
            raise ValueError(
                f"There is no task '{task}' (--vars.tasks); known: {', '.join(TASKS)}."
            )
    return tasks


def tasks_by_kind(names: str) -> dict[str, list[str]]:
    """The tasks in a list with commas, by the kind of data that they need; see `find_tasks`."""
    kinds: dict[str, list[str]] = {}
    for task in find_tasks(names):
        kinds.setdefault(TASKS[task], []).append(task)
    return kinds


def present(run: Path, tasks: str) -> list[str]:
    """Those of some tasks that a run has data for."""
    return [task for task in find_tasks(tasks) if (run / "corpus" / TASKS[task]).exists()]


def check_labels(task: str, parts: dict[str, list[Doc]]) -> None:
    """See that there is something to learn and to measure, before other tasks are trained.

    Raises:
        ValueError: the training or the test set has too few labels.
    """
    for split, least in (("train", LEAST_LABELS.get(task, 1)), ("test", 1)):
        docs = parts[split]
        labels: set[str] = set()
        if task == "ner":
            labels.update(span.label_ for doc in docs for span in doc.ents)
        elif task == "textcat":
            labels.update(label for doc in docs for label, value in doc.cats.items() if value)
        else:
            labels.update(t.tag_ if task == "tagger" else t.dep_ for doc in docs for t in doc)
        if len(labels) < least:
            found = f"no other label than {labels.pop()}" if labels else "no label"
            raise ValueError(
                f"{task}: there is {found} in the {len(docs)} texts of the {split} set."
            )


def find_file(kind: str, split: str, lang: str, local: str) -> Path | None:
    """The file of annotated texts, None if there is none.

    Raises:
        ValueError: there is no training or test set.
    """
    if local:
        folder, name = Path(local), LOCAL.get(lang, {}).get(kind, f"{kind}.{{}}.*")
    else:
        folder, name = Path("assets", lang), f"{kind}.{{}}.*"
    splits = (split, "few") if split == "train" else (split,)
    found = [path for each in splits for path in sorted(folder.glob(name.format(each)))]
    if not found and split != "dev":
        raise ValueError(
            f"There is no {folder / name.format(split)}. Download the data with `python -m spacy "
            f"project assets` (with --extra, if it is not English), name a folder with "
            f"--vars.local, or (not in `language`) choose other tasks with --vars.tasks."
        )
    return found[0] if found else None


def read_rows(kind: str, path: Path) -> list[MakeDoc]:
    """The annotated texts of a file, each as a function that makes a Doc of it.

    Raises:
        ValueError: the format is unknown, or the file has another one.
    """
    if path.suffix == ".spacy":
        return [partial(copy_doc, data) for data in DocBin().from_disk(path).get_docs(Vocab())]
    suffix = format_of(path)
    if (kind, suffix) not in FORMATS:
        known = ", ".join(name for each, name in FORMATS if each == kind)
        raise ValueError(f"{path}: unknown format for {kind}; known are {known}.")
    read, make = FORMATS[kind, suffix]
    with naming_errors("the annotated texts", path), open_text(path, "utf-8-sig", "") as file:
        return [partial(make_doc, make, path, row) for row in read(file)]


def make_doc(make: Callable[..., Doc], path: Path, row: Any, nlp: Language) -> Doc:
    """A Doc of a row; an error names the file that the row is from."""
    with naming_errors("the annotated texts", path):
        return make(row, nlp)


def read_trees(lines: Iterable[str], n_sentences: int = SENTENCES) -> Iterator[str]:
    """Some sentences of a treebank at a time, without comments.

    Raises:
        ValueError: a word has not the ten columns of CoNLL-U, or its number or head is wrong, or
            heads make no tree.
    """
    sentences = []
    for block in re.split(r"\n\s*\n", "".join(lines).replace("\r", "")):
        rows = [line for line in block.split("\n") if line.strip() and line[0] != "#"]
        if wrong := [row for row in rows if row.count("\t") != 9]:
            raise ValueError(f"this is no word of CoNLL-U, with ten columns: {wrong[0][:80]!r}")
        words = [row for row in rows if not NO_WORD.match(row)]
        known = set(map(str, range(len(words) + 1)))
        heads = []
        for number, word in enumerate(words, 1):
            columns = word.split("\t")
            if columns[0] != str(number) or columns[6] not in known:
                raise ValueError(
                    f"the words of a sentence have the numbers from 1, and each names that of its "
                    f"head in the seventh column, or 0, but there is {word[:80]!r}"
                )
            heads.append(int(columns[6]))
        if (number := find_cycle(heads)) is not None:
            raise ValueError(
                f"there is a cycle; the heads above each word must lead to 0, but there is "
                f"{words[number - 1][:80]!r}"
            )
        if words:  # else comments alone
            sentences.append("\n".join(rows))
    for i in range(0, len(sentences), n_sentences):
        yield "\n\n".join(sentences[i : i + n_sentences]) + "\n\n"


def find_cycle(heads: list[int]) -> int | None:
    """The first word that leads to no root, if there is one; words count from 1. A root has the
    head 0, or is its own head, as in spaCy."""
    found = {0}
    while True:
        more = {i for i, head in enumerate(heads, 1) if head in found or head == i}
        if more <= found:
            return min(set(range(1, len(heads) + 1)) - found, default=None)
        found |= more


def read_iob(lines: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
    """A token first and its tag last on each line, between tabs or spaces; an empty line after each
    sentence. Where no entity of its label is before it, I- begins one, as in IOB1.

    Raises:
        ValueError: a tag is not one of IOB.
    """
    words: list[str] = []
    tags: list[str] = []
    for line in (*lines, ""):
        if line.strip():
            # Not at other blanks: a French number has one inside.
            columns = line.rstrip().split("\t" if "\t" in line else " ")
            if len(columns) < 2 or not TAG.fullmatch(tag := columns[-1]):
                raise ValueError(
                    f"a line must end in a tag, O, B-LABEL or I-LABEL, but there is {line!r}"
                )
            if tag[0] == "I" and (not tags or tags[-1][1:] != tag[1:]):
                tag = f"B{tag[1:]}"
            words.append(columns[0])
            tags.append(tag)
        elif words:
            yield words, tags
            words, tags = [], []


def read_iob2(lines: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Sentences of lines as `read_iob` has them, or with a token's number, the token and its tag on
    each; comments before them."""

    def columns() -> Iterator[list[str]]:
        rows = (line.rstrip().split("\t") for line in lines if not line.startswith("# "))
        for _, sentence in groupby(rows, any):
            every = list(sentence)
            words = [row for row in every if not NO_WORD.fullmatch(row[0])]
            yield from (row[1:3] for row in words) if are_numbered(words) else every

    return read_iob(map("\t".join, columns()))


def are_numbered(rows: list[list[str]]) -> bool:
    """Whether the rows of a sentence begin with successive numbers, and have tags behind words."""
    if not rows or not rows[0][0].isdecimal():
        return False
    first = int(rows[0][0])
    return (len(rows) > 1 or first < 2) and all(
        row[0] == str(number) and len(row) > 2 and TAG.fullmatch(row[2])
        for number, row in enumerate(rows, first)
    )


def read_klue(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A character and its tag on each line, an empty line after each sentence."""
    text, spans = "", []
    for line in (*lines, "\n"):
        line = line.rstrip("\r\n")
        if line.startswith("##"):
            continue
        if not line and text:
            yield {"text": text, "spans": spans}
            text, spans = "", []
        elif line:
            character, _, tag = line.rpartition("\t")
            if tag.startswith("B-"):
                spans.append((len(text), len(text) + 1, tag[2:]))
            elif tag.startswith("I-") and spans:
                spans[-1] = (spans[-1][0], len(text) + 1, spans[-1][2])
            text += character


def read_json(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """JSON with a "text", and its "label" or the "spans" of its entities: start, end, label."""
    return map(json.loads, lines)


def read_banking(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A table with the columns text and category."""
    for row in csv.DictReader(lines):
        yield {"text": row["text"], "label": row["category"]}


def read_reviews(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A table with the columns document and label, which is 1 for a positive review."""
    for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
        if row["document"]:
            yield {"text": row["document"], "label": "POS" if row["label"] == "1" else "NEG"}


def make_parsed(sentences: str, nlp: Language) -> Doc:
    """A Doc with tags and trees."""
    [doc] = conllu_to_docs(sentences, n_sents=SENTENCES, no_print=True)
    return doc


def make_tagged(row: tuple[list[str], list[str]], nlp: Language) -> Doc:
    """A Doc of tokens with entities."""
    return Doc(nlp.vocab, words=row[0], ents=row[1])


def make_with_spans(row: dict[str, Any], nlp: Language) -> Doc:
    """A Doc with entities, which are extended to whole tokens."""
    doc = nlp.make_doc(row["text"])
    found = [doc.char_span(*span, alignment_mode="expand") for span in row["spans"]]
    doc.ents = filter_spans([span for span in found if span is not None])
    return doc


def make_labelled(row: dict[str, Any], nlp: Language) -> Doc:
    """A Doc of one class."""
    doc = nlp.make_doc(row["text"])
    doc.cats = {row["label"]: 1.0}
    return doc


def copy_doc(doc: Doc, nlp: Language) -> Doc:
    """A Doc with the vocab of the pipeline."""
    return Doc(nlp.vocab).from_bytes(doc.to_bytes())


# How a file is read into rows, and a row made into a Doc, by the kind and suffix of the file.
FORMATS: dict[tuple[str, str], tuple[Callable[..., Iterator[Any]], Callable[..., Doc]]] = {
    ("ud", ".conllu"): (read_trees, make_parsed),
    ("ner", ".iob"): (read_iob, make_tagged),
    ("ner", ".iob2"): (read_iob2, make_tagged),
    ("ner", ".tsv"): (read_klue, make_with_spans),
    ("ner", ".jsonl"): (read_json, make_with_spans),
    ("textcat", ".jsonl"): (read_json, make_labelled),
    ("textcat", ".csv"): (read_banking, make_labelled),
    ("textcat", ".tsv"): (read_reviews, make_labelled),
}


def read_paragraphs(split: str, lang: str, local: str) -> Iterator[str]:
    """The paragraphs of the raw text; of downloads, every fiftieth is held out.

    Args:
        split: train, or dev for the text that is held out.
        lang, local: see `find_file`.

    Raises:
        ValueError: there is no text.
    """
    if local and "text" in LOCAL.get(lang, {}):
        names = [name.format("valid" if split == "dev" else split) for name in LOCAL[lang]["text"]]
        found = [path for name in names if (path := Path(local, name)).exists()]
        if not found:
            raise ValueError(f"There is none of the texts {', '.join(names)} in {local}.")
        with ExitStack() as stack:
            files = [stack.enter_context(open_text(path, "utf-8-sig")) for path in found]
            yield from in_turn([filter(None, map(str.strip, file)) for file in files])
        return
    folder = Path(local) if local else Path("assets", lang)
    files = sorted(folder.glob("text.*"))
    if not files:
        raise ValueError(
            f"There is no {folder / 'text.*'}; see `python -m spacy project assets`, or name your "
            f"own for the workflow `language` with --vars.text FILE."
        )
    yield from in_turn([read_split(path, split) for path in files])


def in_turn(texts: list[Iterator[str]]) -> Iterator[str]:
    """The paragraphs of some texts, one from each in turn: runs may be short."""
    for turn in zip_longest(*texts):
        yield from filter(None, turn)


def read_split(path: Path, split: str) -> Iterator[str]:
    """The paragraphs of a file for training, or those that are held out."""
    for i, text in enumerate(read_articles(path)):
        if (i % 50 == 49) == (split == "dev"):
            yield from (line for line in text.splitlines() if len(line.split()) >= LEAST_WORDS)


def read_articles(path: Path) -> Iterator[str]:
    """The paragraphs of novels, or the texts of any file that `elmo tokenize` reads."""
    return read_novels(path) if path.suffix == ".zip" else texts_in(path)


def read_novels(path: Path) -> Iterator[str]:
    """The paragraphs and lines of verse of an archive of ELTeC, whose novels are in TEI."""
    with ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if "/level1/" in name and name.lower().endswith(".xml"):
                for body in ElementTree.fromstring(archive.read(name)).iter(f"{TEI}body"):
                    for each in body.iter():
                        if each.tag in (f"{TEI}p", f"{TEI}l"):
                            yield mended("".join(each.itertext()))


def mended(paragraph: str) -> str:
    """A paragraph in one line, with whole words; the dashes of a dialogue stand alone."""
    text = CONTROL.sub(lambda sign: sign[0].encode("latin-1").decode("cp1252", "ignore"), paragraph)
    return STUCK_DASH.sub("— ", DIVIDED.sub("", " ".join(text.split())))
