"""The data as spaCy and `elmo tokenize` read them: .spacy files and plain text."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import typer
from datasets import (
    LEAST_WORDS,
    SPLITS,
    TASKS,
    check_labels,
    find_file,
    read_paragraphs,
    read_rows,
    tasks_by_kind,
)
from sentences import annotated_docs, raw_text
from sizes import Size, find_size, thin_out
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from wasabi import msg

from spacy_elmo.cli.options import report_errors
from spacy_elmo.text.readers import blank


@report_errors("Cannot read the data")
def main(
    run: Path,
    lang: str = "en",
    size: str = "full",
    local: str = "",
    tasks: str = ",".join(TASKS),
    tokenizer: str = "spacy.Tokenizer.v1",
) -> None:
    """Write RUN/corpus/KIND/SPLIT.spacy and RUN/text/{train,dev}.txt."""
    nlp = blank(lang, tokenizer)
    limits, kinds = find_size(size), tasks_by_kind(tasks)
    own = size == "tiny" and lang == "en" and not local  # sentences that come with the project
    for kind, chosen in kinds.items():
        parts = own_docs(nlp) if own else downloaded_docs(nlp, kind, lang, local, limits)
        if kind == "textcat":
            complete_labels(parts)
        write_corpus(run / "corpus" / kind, chosen, parts)

    def read(split: str) -> Iterator[str]:
        return raw_text(split) if own else read_paragraphs(split, lang, local)

    for split in write_texts(run / "text", read, limits.paragraphs):
        msg.warn(no_text(split))  # a biLM that is ready needs none


def write_corpus(folder: Path, tasks: list[str], parts: dict[str, list[Doc]]) -> None:
    """Write the labelled Docs of each split, after a look at what the tasks learn from."""
    for task in tasks:
        check_labels(task, parts)
    folder.mkdir(parents=True, exist_ok=True)
    for split, docs in parts.items():
        DocBin(docs=docs, store_user_data=False).to_disk(folder / f"{split}.spacy")
    msg.good(f"{folder.name}: " + ", ".join(f"{len(parts[split])} {split}" for split in SPLITS))


def write_texts(
    folder: Path, read: Callable[[str], Iterator[str]], most: int | None
) -> Iterator[str]:
    """Write the raw text for training and the one that is held out; the splits without any.

    Args:
        folder: gets train.txt and dev.txt.
        read: the paragraphs of a split.
        most: of them in training, a tenth of which is held out; None: all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev"):
        n = most // 10 if most is not None and split == "dev" else most
        n_words = write_text(folder / f"{split}.txt", islice(read(split), n))
        if not n_words:
            yield split
        msg.good(f"text: {n_words:,} words {split}")


def own_docs(nlp: Language) -> dict[str, list[Doc]]:
    """The sentences of the project; each tree is in each split."""
    parts: dict[str, list[Doc]] = {split: [] for split in SPLITS}
    for i, doc in enumerate(annotated_docs(nlp.vocab)):
        turn = (i + i // 5) % 5
        parts["dev" if turn == 0 else "test" if turn == 2 else "train"].append(doc)
    return parts


def downloaded_docs(
    nlp: Language, kind: str, lang: str, local: str, limits: Size
) -> dict[str, list[Doc]]:
    """The annotated texts of a kind, not more than the size allows."""
    files = {split: find_file(kind, split, lang, local) for split in SPLITS}
    parts = {split: read_rows(kind, path) for split, path in files.items() if path}
    if "dev" not in parts:
        rows = parts["train"]
        parts["dev"] = rows[::10]
        parts["train"] = [row for i, row in enumerate(rows) if i % 10]
    return {
        split: [make_doc(nlp) for make_doc in thin_out(rows, getattr(limits, split))]
        for split, rows in parts.items()
    }


def complete_labels(parts: dict[str, list[Doc]]) -> None:
    """Give each text a value for each label of the training set; others are left out."""
    labels = sorted({label for doc in parts["train"] for label in doc.cats})
    for split, docs in parts.items():
        parts[split] = [doc for doc in docs if set(doc.cats) <= set(labels)]
        for doc in parts[split]:
            doc.cats = {label: doc.cats.get(label, 0.0) for label in labels}


def no_text(split: str) -> str:
    """Why there may be none, where there is a file."""
    return (
        f"There is no text to {'train on' if split == 'train' else 'hold out'}. Of a file text.*, "
        f"only lines of {LEAST_WORDS} words or more are read, with spaces between them (put them "
        f"there, or name the file for the workflow `language` with --vars.text), and every 50th "
        f"text is held out."
    )


def write_text(path: Path, paragraphs: Iterator[str]) -> int:
    """Write a paragraph on each line; the number of words.

    A file of the same text is left as it is, so that what was made of it is not made again.
    """
    n_words, new = 0, path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        for paragraph in paragraphs:
            file.write(paragraph + "\n")
            n_words += len(paragraph.split())
    if path.exists() and filecmp.cmp(new, path, shallow=False):
        new.unlink()
    else:
        new.replace(path)
    return n_words


if __name__ == "__main__":
    typer.run(main)
