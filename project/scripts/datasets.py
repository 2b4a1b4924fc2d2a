"""Where the data of each language are, and how their formats are read.

Downloads, and files of your own, are ``assets/LANG/KIND.SPLIT.SUFFIX``, with the kinds ud, ner and
textcat, and ``assets/LANG/text.SUFFIX`` for the raw text. Without a dev set, every tenth text of
the training set is taken for it. Files may be compressed with xz, and .spacy files are read too.
"""

from __future__ import annotations

import csv
import json
import lzma
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training.converters import conllu_to_docs
from spacy.util import filter_spans

TASKS = {"tagger": "ud", "parser": "ud", "ner": "ner", "textcat": "textcat"}
SPLITS = ("train", "dev", "test")
SENTENCES = 5  # of a treebank in each Doc, so that a parser learns where they end

# The files of a local folder, instead of downloads.
LOCAL = {
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


def find_file(kind: str, split: str, lang: str, local: str) -> Path | None:
    """The file of annotated texts, None if there is none.

    Raises:
        ValueError: there is no training or test set.
    """
    if local:
        pattern = LOCAL.get(lang, {}).get(kind, f"{kind}.{{}}.*")
        folder, name = Path(local), str(pattern).format(split)
    else:
        folder, name = Path("assets", lang), f"{kind}.{split}.*"
    found = sorted(folder.glob(name))
    if not found and split != "dev":
        raise ValueError(
            f"There is no {folder / name}. Download the data with `python -m spacy project assets` "
            f"(for Korean with --extra), name a folder with --vars.local, or choose other tasks "
            f"with --vars.tasks."
        )
    return found[0] if found else None


def read_docs(nlp: Language, kind: str, path: Path) -> Iterator[Doc]:
    """The annotated texts of a file, as its kind and suffix demand.

    Raises:
        ValueError: the format is unknown.
    """
    if path.suffix == ".spacy":
        yield from DocBin().from_disk(path).get_docs(nlp.vocab)
        return
    suffix = path.with_suffix("").suffix if path.suffix == ".xz" else path.suffix
    if (kind, suffix) not in READERS:
        known = ", ".join(name for each, name in READERS if each == kind)
        raise ValueError(f"{path}: unknown format for {kind}; known are {known}.")
    with open_text(path) as file:
        yield from READERS[kind, suffix](nlp, file)


def open_text(path: Path) -> Iterable[str]:
    """A text file, compressed or not."""
    opener = lzma.open if path.suffix == ".xz" else open
    return opener(path, "rt", encoding="utf-8", newline="")


def read_conllu(nlp: Language, lines: Iterable[str]) -> Iterator[Doc]:
    """Sentences with tags and trees."""
    yield from conllu_to_docs("".join(lines), n_sents=SENTENCES, no_print=True)


def read_iob(nlp: Language, lines: Iterable[str]) -> Iterator[Doc]:
    """A token and its tag on each line, an empty line after each sentence."""
    words: list[str] = []
    tags: list[str] = []
    for line in (*lines, ""):
        word, _, tag = line.strip().partition("\t")
        if word:
            words.append(word)
            tags.append(tag)
        elif words:
            yield Doc(nlp.vocab, words=words, ents=tags)
            words, tags = [], []


def read_klue(nlp: Language, lines: Iterable[str]) -> Iterator[Doc]:
    """A character and its tag on each line, an empty line after each sentence."""
    text, spans = "", []
    for line in (*lines, "\n"):
        line = line.rstrip("\r\n")
        if line.startswith("##"):
            continue
        if not line and text:
            yield with_spans(nlp, text, spans)
            text, spans = "", []
        elif line:
            character, _, tag = line.rpartition("\t")
            if tag.startswith("B-"):
                spans.append((len(text), len(text) + 1, tag[2:]))
            elif tag.startswith("I-") and spans:
                spans[-1] = (spans[-1][0], len(text) + 1, spans[-1][2])
            text += character


def read_spans(nlp: Language, lines: Iterable[str]) -> Iterator[Doc]:
    """JSON with a "text" and the "spans" of its entities: start, end and label."""
    for row in map(json.loads, lines):
        yield with_spans(nlp, row["text"], row["spans"])


def read_labels(nlp: Language, lines: Iterable[str]) -> Iterator[Doc]:
    """JSON with a "text" and its "label"."""
    for row in map(json.loads, lines):
        yield with_label(nlp, row["text"], row["label"])


def read_banking(nlp: Language, lines: Iterable[str]) -> Iterator[Doc]:
    """A table with the columns text and category."""
    for row in csv.DictReader(lines):
        yield with_label(nlp, row["text"], row["category"])


def read_reviews(nlp: Language, lines: Iterable[str]) -> Iterator[Doc]:
    """A table with the columns document and label, which is 1 for a positive review."""
    for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
        if row["document"]:
            yield with_label(nlp, row["document"], "POS" if row["label"] == "1" else "NEG")


def with_spans(nlp: Language, text: str, spans: Iterable[tuple[int, int, str]]) -> Doc:
    """A Doc with entities, which are extended to whole tokens."""
    doc = nlp.make_doc(text)
    found = [doc.char_span(*span, alignment_mode="expand") for span in spans]
    doc.ents = filter_spans([span for span in found if span is not None])
    return doc


def with_label(nlp: Language, text: str, label: str) -> Doc:
    """A Doc of one class."""
    doc = nlp.make_doc(text)
    doc.cats = {label: 1.0}
    return doc


READERS: dict[tuple[str, str], Callable[[Language, Iterable[str]], Iterator[Doc]]] = {
    ("ud", ".conllu"): read_conllu,
    ("ner", ".iob"): read_iob,
    ("ner", ".tsv"): read_klue,
    ("ner", ".jsonl"): read_spans,
    ("textcat", ".jsonl"): read_labels,
    ("textcat", ".csv"): read_banking,
    ("textcat", ".tsv"): read_reviews,
}


def read_paragraphs(split: str, lang: str, local: str) -> Iterator[str]:
    """The paragraphs of the raw text; of one file, every fiftieth is held out.

    Args:
        split: train, or dev for the text that is held out.
        lang, local: see `find_file`.

    Raises:
        ValueError: there is no text.
    """
    if local and "text" in LOCAL.get(lang, {}):
        for name in LOCAL[lang]["text"]:
            with open_text(Path(local, name.format("valid" if split == "dev" else split))) as lines:
                yield from filter(None, map(str.strip, lines))
        return
    folder = Path(local) if local else Path("assets", lang)
    files = sorted(folder.glob("text.*"))
    if not files:
        raise ValueError(f"There is no {folder / 'text.*'}; see `python -m spacy project assets`.")
    for i, text in enumerate(read_articles(files[0])):
        if (i % 50 == 49) == (split == "dev"):
            yield from (line for line in text.splitlines() if len(line.split()) >= 8)


def read_articles(path: Path) -> Iterator[str]:
    """The texts of a table in Parquet, or of any file that `elmo tokenize` reads."""
    if path.suffix != ".parquet":
        from spacy_elmo.readers import read_texts

        yield from read_texts(path)
        return
    from spacy_elmo.bilm.extras import import_extra

    parquet = import_extra("pyarrow.parquet", "parquet", "Parquet needs pyarrow", str(path))
    for batch in parquet.ParquetFile(path).iter_batches(256, columns=["text"]):
        yield from batch["text"].to_pylist()
