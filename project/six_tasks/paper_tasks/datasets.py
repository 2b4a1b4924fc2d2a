"""The data of each task as Docs: of a folder of small files, or of the assets."""

from __future__ import annotations

import csv
import json
import lzma
import random
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

from spacy.lang.en import English
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training.converters import conll_ner_to_docs

from .coreference import CLUSTERS, GAP
from .inputs import make_pair, make_question, mark_mentions, mark_predicates
from .questions import ANSWERS
from .roles import ROLES

SPLITS = ("train", "dev", "test")
PIECE = 400  # words of a part of a long document that is learned from
Row = dict[str, Any]

# Of a local folder, and what each is called there.
LOCAL = {
    "entailment": "six/snli/{}.jsonl.xz",
    "questions": "six/squad/{}.jsonl.xz",
    "roles": "six/srl/{}.jsonl.xz",
    "coreference": "six/coref-litbank/{}.jsonl.xz",
    "gap": "six/coref/{}.jsonl.xz",
    "ner": "ner/wnut17/{}.iob.xz",
    "sentiment": "textcat/sst5/{}.jsonl.xz",
}


def write_corpus(
    out: Path, task: str, local: Path | None = None, assets: Path = Path("assets")
) -> None:
    """Write the Docs of a task to ``out/{train,dev,test}.spacy``; files that are there stay, if
    they are of the same data, which ``out/source.txt`` tells.

    Args:
        out: a directory.
        task, local, assets: see `read_docs`.

    Raises:
        ValueError: the data are not there.
    """
    nlp = tokenizer()
    out.mkdir(parents=True, exist_ok=True)
    paths = [find_source(task, split, local, assets) for split in SPLITS]
    source, note = "\n".join(map(describe, dict.fromkeys(paths))), out / "source.txt"
    if not note.exists() or note.read_text("utf-8") != source:
        for split in SPLITS:
            (out / f"{split}.spacy").unlink(missing_ok=True)
        note.write_text(source, "utf-8")
    for split in SPLITS:
        if not (path := out / f"{split}.spacy").exists():
            docs = read_docs(nlp, task, split, local, assets)
            DocBin(docs=docs, store_user_data=True).to_disk(path)


def tokenizer() -> Language:
    """spaCy's English words, and sentences by their final marks."""
    nlp = English()
    nlp.add_pipe("sentencizer")
    return nlp


def read_docs(nlp: Language, task: str, split: str, local: Path | None, assets: Path) -> list[Doc]:
    """The Docs of a split.

    Args:
        nlp: for words and the vocab.
        task: a key of `LOCAL`.
        split: train, dev or test.
        local: a folder laid out as `LOCAL`.
        assets: the folder of the downloads, if there is no such folder.

    Raises:
        ValueError: the data are not there.
    """
    path = find_source(task, split, local, assets)
    try:
        if task == "ner":
            return list(conll_ner_to_docs(iob_text(path), n_sents=1, no_print=True))
        rows = read_jsonl(path) if local else list(ASSETS[task](path, split))
    except FileNotFoundError as error:
        raise ValueError(
            f"There is no {error.filename}. Download the data with `python -m spacy project assets "
            f"project/six_tasks --extra`, or name a folder that has them with --vars.local; a "
            f"relative one starts from project/six_tasks."
        ) from None
    docs = (MAKE[task](nlp, row) for row in rows)
    if task == "coreference" and split == "train":
        return [piece for doc in docs for piece in pieces(doc, PIECE)]
    return list(docs)


def find_source(task: str, split: str, local: Path | None, assets: Path) -> Path:
    """The file or folder with the data of a split, see `read_docs`; files may be unpacked."""
    if local:
        path = (local / LOCAL[task].format(split)).resolve()
        return path if path.exists() else path.with_suffix("")
    if task == "ner":  # CoNLL-2003's, if a user has it, or WNUT-17's
        name = "conll2003" if (assets / "conll2003.train.iob").exists() else "ner"
        return (assets / f"{name}.{split}.iob").resolve()
    return assets.resolve()


def describe(path: Path) -> str:
    """The path, and the checksum of a file: its text may have been corrected."""
    checksum = f" {sha256(path.read_bytes()).hexdigest()}" if path.is_file() else ""
    return f"{path}{checksum}"


def unpack(path: Path) -> str:
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")


def read_jsonl(path: Path) -> list[Row]:
    return [json.loads(line) for line in unpack(path).split("\n") if line]


# ---- rows to Docs


def entailment_doc(nlp: Language, row: Row) -> Doc:
    """``{"premise", "hypothesis", "label"}``"""
    doc = make_pair(nlp, row["premise"], row["hypothesis"])
    doc._.entailment = {row["label"]: 1.0}
    return doc


def question_doc(nlp: Language, row: Row) -> Doc:
    """``{"question", "context", "answers": [{"text", "start"}]}``; spaces of the context are kept,
    so that characters count from its first word."""
    context = row["context"]
    doc = make_question(nlp, row["question"], context)
    [passage] = doc.spans["passage"]
    spans = []
    for answer in row["answers"]:
        start = passage.start_char + answer["start"]
        span = doc.char_span(start, start + len(answer["text"]), alignment_mode="expand")
        if span is not None:
            spans.append(span)
    doc.spans[ANSWERS] = spans
    doc._.answers = [answer["text"] for answer in row["answers"]]
    return doc


def roles_doc(nlp: Language, row: Row) -> Doc:
    """``{"words", "predicates": [{"index", "roles": [[start, end, label]]}]}``, one sentence"""
    words = row["words"]
    doc = Doc(nlp.vocab, words=words, sent_starts=[i == 0 for i in range(len(words))])
    mark_predicates(doc, [each["index"] for each in row["predicates"]])
    doc.spans[ROLES] = [
        Span(doc, start, end, label, span_id=each["index"])
        for each in row["predicates"]
        for start, end, label in each["roles"]
    ]
    return doc


def clusters_doc(nlp: Language, row: Row) -> Doc:
    """``{"words", "sentences": [[start, end]], "clusters": [[[start, end]]]}``"""
    starts = {start for start, _ in row["sentences"]}
    words = row["words"]
    doc = Doc(nlp.vocab, words=words, sent_starts=[i in starts for i in range(len(words))])
    set_clusters(doc, row["clusters"])
    return doc


def set_clusters(doc: Doc, clusters: list[Any]) -> None:
    for n, cluster in enumerate(clusters, 1):
        doc.spans[f"{CLUSTERS}{n}"] = [doc[start:end] for start, end in cluster]


def gap_doc(nlp: Language, row: Row) -> Doc:
    """A row of GAP: a pronoun and two names, which are the mentions that are given."""
    doc = nlp.get_pipe("sentencizer")(nlp.make_doc(row["text"]))
    found = {}
    for name, text in (("pronoun", row["pronoun"]), ("A", row["A"]), ("B", row["B"])):
        start = row[f"{name}_offset"]
        found[name] = doc.char_span(start, start + len(text), alignment_mode="expand")
    mark_mentions(doc, found.values())
    doc.spans[GAP] = list(found.values())
    same = [found[name] for name in ("A", "B") if row[f"{name}_coref"]]
    alone = [[found[name]] for name in ("A", "B") if not row[f"{name}_coref"]]
    clusters = [[found["pronoun"], *same], *alone]
    set_clusters(doc, [[(span.start, span.end) for span in cluster] for cluster in clusters])
    return doc


def sentiment_doc(nlp: Language, row: Row) -> Doc:
    """``{"text", "label"}``, split into words by spaces"""
    doc = Doc(nlp.vocab, words=row["text"].split())
    doc.cats = {label: float(label == row["label"]) for label in SENTIMENTS}
    return doc


SENTIMENTS = ("VERY_NEG", "NEG", "NEU", "POS", "VERY_POS")

MAKE: dict[str, Callable[[Language, Row], Doc]] = {
    "entailment": entailment_doc,
    "questions": question_doc,
    "roles": roles_doc,
    "coreference": clusters_doc,
    "gap": gap_doc,
    "sentiment": sentiment_doc,
}


def pieces(doc: Doc, n_words: int) -> Iterator[Doc]:
    """A Doc in parts of whole sentences, with what is left of its clusters."""
    starts = [sent.start for sent in doc.sents] + [len(doc)]
    first = 0
    for i, start in enumerate(starts[1:], 1):
        is_last = i == len(starts) - 1
        if not is_last and starts[i + 1] - first <= n_words:
            continue
        piece = Doc(
            doc.vocab,
            words=[token.text for token in doc[first:start]],
            sent_starts=[bool(token.is_sent_start) for token in doc[first:start]],
        )
        inside = (
            [(s.start - first, s.end - first) for s in doc.spans[key]
             if first <= s.start and s.end <= start]
            for key in doc.spans
        )  # fmt: skip
        set_clusters(piece, [cluster for cluster in inside if cluster])
        yield piece
        first = start


# ---- assets to rows


def snli_rows(folder: Path, split: str) -> Iterator[Row]:
    with zipfile.ZipFile(folder / "snli_1.0.zip") as archive:
        with archive.open(f"snli_1.0/snli_1.0_{split}.jsonl") as file:
            for row in map(json.loads, file):
                if row["gold_label"] != "-":
                    yield {
                        "premise": row["sentence1"],
                        "hypothesis": row["sentence2"],
                        "label": row["gold_label"],
                    }


def squad_rows(folder: Path, split: str) -> Iterator[Row]:
    """The official dev set is the test set; every twentieth article of train is the dev set."""
    name = "dev" if split == "test" else "train"
    articles = json.loads((folder / f"squad.{name}-v1.1.json").read_text("utf-8"))["data"]
    for i, article in enumerate(articles):
        if split == "test" or (i % 20 == 19) == (split == "dev"):
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    answers = [
                        {"text": each["text"], "start": each["answer_start"]}
                        for each in question["answers"]
                    ]
                    yield {
                        "question": question["question"],
                        "context": paragraph["context"],
                        "answers": answers,
                    }


def propbank_rows(folder: Path, split: str) -> Iterator[Row]:
    """Universal Propositions, whose roles are head words: the subtree of each is its span.

    Raises:
        ValueError: there is no predicate in the file.
    """
    path = folder / f"en_ewt-up-{split}.conllu"
    found = False
    for sentence in path.read_text("utf-8").strip().split("\n\n"):
        lines = [line.split("\t") for line in sentence.splitlines() if not line.startswith("#")]
        lines = [line for line in lines if line[0].isdigit()]
        heads = [int(line[6]) - 1 for line in lines]
        predicates = []
        for labels in zip_longest(*map(role_labels, lines), fillvalue="_"):
            if "V" in labels:
                i = labels.index("V")
                roles = [
                    [*subtree(heads, j, i), label]
                    for j, label in enumerate(labels)
                    if label not in ("", "_") and j != i
                ]
                predicates.append({"index": i, "roles": [[i, i + 1, "V"], *roles]})
        found = found or bool(predicates)
        yield {"words": [line[1] for line in lines], "predicates": predicates}
    if not found:
        raise ValueError(f"{path.resolve()} has no predicates: download it anew.")


def role_labels(line: list[str]) -> list[str]:
    """The role of a token for each predicate, V for the predicate itself: ``Args=`` in its last
    column of CoNLL-U, or else the columns behind that and the one of the roleset."""
    for part in line[9].split("|"):
        if part.startswith("Args="):
            return part.removeprefix("Args=").split("/")
    return line[11:]


def subtree(heads: list[int], root: int, without: int) -> tuple[int, int]:
    """First word and the one behind the last of a subtree, up to a word that is not of it."""
    inside = {root}
    for _ in heads:
        grown = inside | {i for i, head in enumerate(heads) if head in inside and i != without}
        if grown == inside:
            break
        inside = grown
    start = end = root
    while start - 1 in inside:
        start -= 1
    while end + 1 in inside:
        end += 1
    return start, end + 1


def litbank_rows(folder: Path, split: str) -> Iterator[Row]:
    """Eighty documents, ten and ten, drawn at random."""
    files = sorted(path for path in (folder / "litbank").iterdir() if path.suffix == ".conll")
    random.Random(0).shuffle(files)
    first, last = {"train": (0, 80), "dev": (80, 90), "test": (90, None)}[split]
    for file in files[first:last]:
        words: list[str] = []
        sentences, start = [], 0
        clusters: dict[str, list[tuple[int, int]]] = defaultdict(list)
        open_spans: dict[str, list[int]] = defaultdict(list)
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("#"):
                continue
            if not line.strip():
                if start < len(words):
                    sentences.append((start, len(words)))
                start = len(words)
                continue
            columns = line.split()
            for part in columns[-1].split("|"):
                name = part.strip("()_-")
                if part.startswith("("):
                    open_spans[name].append(len(words))
                if part.endswith(")"):
                    clusters[name].append((open_spans[name].pop(), len(words) + 1))
            words.append(columns[3])
        yield {"words": words, "sentences": sentences, "clusters": list(clusters.values())}


def gap_rows(folder: Path, split: str) -> Iterator[Row]:
    name = {"train": "development", "dev": "validation", "test": "test"}[split]
    with (folder / f"gap-{name}.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            found: Row = {"text": row["Text"], "pronoun": row["Pronoun"]}
            found["pronoun_offset"] = int(row["Pronoun-offset"])
            for each in "AB":
                found[each], found[f"{each}_offset"] = row[each], int(row[f"{each}-offset"])
                found[f"{each}_coref"] = row[f"{each}-coref"].upper() == "TRUE"
            yield found


def stsa_rows(folder: Path, split: str) -> Iterator[Row]:
    """A class from 0 to 4 and a text on each line."""
    for line in (folder / f"stsa.fine.{split}").read_text("utf-8").splitlines():
        label, _, text = line.partition(" ")
        yield {"text": text, "label": SENTIMENTS[int(label)]}


def iob_text(path: Path) -> str:
    """A file of tokens and BIO tags, without CoNLL-2003's marks of documents."""
    lines = [line.strip() for line in unpack(path).split("\n")]
    return "\n".join(line for line in lines if not line.startswith("-DOCSTART-")) + "\n"


ASSETS: dict[str, Callable[[Path, str], Iterator[Row]]] = {
    "entailment": snli_rows,
    "questions": squad_rows,
    "roles": propbank_rows,
    "coreference": litbank_rows,
    "gap": gap_rows,
    "sentiment": stsa_rows,
}
