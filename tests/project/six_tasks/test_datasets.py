"""The data as Docs, from each format."""

from __future__ import annotations

import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import pytest
from paper_tasks.coreference import clusters_of
from paper_tasks.corpus import Corpus
from paper_tasks.datasets import (
    ASSETS,
    LOCAL,
    MAKE,
    clusters_doc,
    gap_doc,
    pieces,
    question_doc,
    read_docs,
    subtree,
    tokenizer,
    write_corpus,
)
from paper_tasks.roles import roles_of
from paper_tasks.sentences import tiny_rows
from spacy.tokens import Doc

NLP = tokenizer()


@pytest.mark.parametrize("task", LOCAL)
def test_our_own_sentences(task: str, tmp_path: Path) -> None:
    write_corpus(tmp_path, task, assets=None)
    docs = [eg.reference for eg in Corpus(str(tmp_path / "train.spacy"))(NLP)]
    assert len(docs) == 48
    rows = tiny_rows(task, "train")
    if task == "questions":
        gold = [row["answers"][0]["text"] for row in rows]
        assert [doc.spans["answers"][0].text for doc in docs] == gold
        assert [list(doc._.answers) for doc in docs] == [[text] for text in gold]
    if task == "roles":
        for doc, row in zip(docs, rows, strict=True):
            for each in row["predicates"]:
                spans = [[s.start, s.end, s.label_] for s in roles_of(doc, each["index"])]
                assert spans == sorted(each["roles"])
    if task == "entailment":
        assert [doc._.entailment for doc in docs] == [{row["label"]: 1.0} for row in rows]


def test_shares_of_the_labels(corpora: Path) -> None:
    path = str(corpora / "entailment" / "train.spacy")

    def texts(**settings: Any) -> list[str]:
        read = Corpus(path, **settings)
        first = [eg.reference.text for eg in read(NLP)]
        assert [eg.reference.text for eg in read(NLP)] == first  # in each epoch
        return first

    some = texts(share=0.25)
    assert len(some) == 12 and some == texts(share=0.25) != texts(share=0.25, seed=1)
    assert len(texts(share=0.001)) == 1
    assert len(texts(limit=5)) == 5


def test_answers_that_are_no_tokens() -> None:
    row = {"question": "When?", "context": " It was 1973-75.", "answers": []}
    row["answers"] = [{"text": "1973", "start": 8}, {"text": "It", "start": 1}]
    doc = question_doc(NLP, row)
    assert doc._.answers == ["1973", "It"]
    assert all(a in s.text for a, s in zip(doc._.answers, doc.spans["answers"], strict=True))


def test_pieces_keep_whole_sentences() -> None:
    row = {
        "words": list("abcdefghij"),
        "sentences": [[0, 4], [4, 6], [6, 10]],
        "clusters": [[[0, 1], [5, 6]], [[6, 7], [8, 9]], [[3, 5]]],
    }
    found = list(pieces(clusters_doc(NLP, row), 6))
    assert [[token.text for token in piece] for piece in found] == [list("abcdef"), list("ghij")]
    assert clusters_of(found[0]) == [[(0, 1), (5, 6)], [(3, 5)]]
    assert clusters_of(found[1]) == [[(0, 1), (2, 3)]]
    assert [len(list(piece.sents)) for piece in found] == [2, 1]


def test_gap() -> None:
    row = {"text": "Ann met Eva Ray. She left.", "pronoun": "She", "pronoun_offset": 17}
    row |= {"A": "Ann", "A_offset": 0, "A_coref": False}
    row |= {"B": "Eva Ray", "B_offset": 8, "B_coref": True}
    doc = gap_doc(NLP, row)
    assert sorted(clusters_of(doc)) == [[(0, 1)], [(2, 4), (5, 6)]]
    assert [span.text for span in doc.spans["gap"]] == ["She", "Ann", "Eva Ray"]


def test_subtrees() -> None:
    # a boat that Anna sold: sold and its clause hang on boat
    heads = [1, -1, 4, 4, 1]
    assert subtree(heads, 1, without=4) == (0, 2)
    assert subtree(heads, 3, without=4) == (3, 4)
    assert subtree(heads, 4, without=1) == (2, 5)


# Universal Propositions: roles in columns of their own, and in the last one of CoNLL-U
UP = """\
# text = Anna sold it, happy.
1\tAnna\t_\t_\t_\t_\t2\tnsubj\t_\t_\t_\tARG0\tARG1
2\tsold\t_\t_\t_\t_\t0\troot\t_\t_\tsell.01\tV\t_
3\tit\t_\t_\t_\t_\t2\tobj\t_\tSpaceAfter=No\t_\tARG1\t_
4\thappy\t_\t_\t_\t_\t2\tadvcl\t_\tSpaceAfter=No\thappy.01\t_\tV

"""
UP_MISC = """\
# text = Anna sold it, happy.
1\tAnna\t_\t_\t_\t_\t2\tnsubj\t_\tFramefile=-|Roleset=-|Args=ARG0/ARG1
2\tsold\t_\t_\t_\t_\t0\troot\t_\tFramefile=sell|Roleset=sell.01|Args=V/_
3\tit\t_\t_\t_\t_\t2\tobj\t_\tSpaceAfter=No|Framefile=-|Roleset=-|Args=ARG1/_
4\thappy\t_\t_\t_\t_\t2\tadvcl\t_\tSpaceAfter=No|Framefile=happy|Roleset=happy.01|Args=_/V

# text = Yes
1\tYes\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No|Framefile=-|Roleset=-|Args=
2\t.\t_\t_\t_\t_\t1\tpunct\t_\t_

"""
LITBANK = """\
#begin document (x); part 0
x 0 0 Anna _ _ _ _ _ _ _ _ (0
x 0 1 Ray _ _ _ _ _ _ _ _ 0)|(1)
x 0 2 left _ _ _ _ _ _ _ _ _

x 0 0 She _ _ _ _ _ _ _ _ (0)

#end document
"""


def test_assets(tmp_path: Path) -> None:
    """The first row of each format."""
    row = {"sentence1": "A.", "sentence2": "B.", "gold_label": "neutral"}
    with zipfile.ZipFile(tmp_path / "snli_1.0.zip", "w") as archive:
        lines = [json.dumps({**row, "gold_label": "-"}), json.dumps(row)]
        archive.writestr("snli_1.0/snli_1.0_dev.jsonl", "\n".join(lines) + "\n")
    paragraph = {"context": "It was late.", "qas": [{"question": "What?", "answers": []}]}
    paragraph["qas"][0]["answers"] = [{"text": "late", "answer_start": 7}]
    articles = json.dumps({"data": [{"paragraphs": [paragraph]}] * 20})
    (tmp_path / "squad.train-v1.1.json").write_text(articles, "utf-8")
    (tmp_path / "en_ewt-up-dev.conllu").write_text(UP, "utf-8")
    (tmp_path / "litbank").mkdir()
    for i in range(100):
        (tmp_path / "litbank" / f"{i}.conll").write_text(LITBANK, "utf-8")
    (tmp_path / "gap-validation.tsv").write_text(
        "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\n"
        "1\tAnn met Eva. She left.\tShe\t13\tAnn\t0\tFALSE\tEva\t8\tTRUE\n",
        "utf-8",
    )
    (tmp_path / "stsa.fine.dev").write_text("4 a fine film\n", "utf-8")
    found = {task: next(iter(rows(tmp_path, "dev"))) for task, rows in ASSETS.items()}
    assert found["entailment"] == {"premise": "A.", "hypothesis": "B.", "label": "neutral"}
    assert found["questions"]["answers"] == [{"text": "late", "start": 7}]
    assert found["roles"]["words"] == ["Anna", "sold", "it", "happy"]
    assert found["coreference"]["clusters"] == [[(0, 2), (3, 4)], [(1, 2)]]
    assert found["coreference"]["sentences"] == [(0, 3), (3, 4)]
    assert (found["gap"]["A_coref"], found["gap"]["B_coref"]) == (False, True)
    assert found["sentiment"] == {"text": "a fine film", "label": "VERY_POS"}
    for task, each in found.items():
        assert isinstance(MAKE[task](NLP, each), Doc)


@pytest.mark.parametrize("text", [UP, UP_MISC])
def test_propositions(text: str, tmp_path: Path) -> None:
    path = tmp_path / "en_ewt-up-dev.conllu"
    path.write_text(text, "utf-8")
    sold, *others = read_docs(NLP, "roles", "dev", None, tmp_path)
    assert [span.start for span in sold.spans["predicates"]] == [1, 3]
    roles = [[(span.text, span.label_) for span in roles_of(sold, i)] for i in (1, 3)]
    assert roles[0] == [("Anna", "ARG0"), ("sold", "V"), ("it", "ARG1")]
    assert roles[1] == [("Anna", "ARG1"), ("happy", "V")]
    assert [len(doc.spans["predicates"]) for doc in others] == [0] * len(others)
    path.write_text(text.replace("V", "_"), "utf-8")
    with pytest.raises(ValueError, match=r"en_ewt-up-dev\.conllu has no predicates: download"):
        read_docs(NLP, "roles", "dev", None, tmp_path)


def test_names(tmp_path: Path) -> None:
    (tmp_path / "ner.dev.iob").write_text(
        "-DOCSTART- O\n\nAnn\tB-person\nleft\tO\n\t\nDover\tB-location\n", "utf-8"
    )
    docs = read_docs(NLP, "ner", "dev", None, tmp_path)
    assert [[ent.text for ent in doc.ents] for doc in docs] == [["Ann"], ["Dover"]]


def test_other_data(tmp_path: Path) -> None:
    """A corpus is made anew from them, and kept otherwise."""
    assets, out = tmp_path / "assets", tmp_path / "ner"
    assets.mkdir()

    def first_word() -> str:
        write_corpus(out, "ner", None, assets)
        return next(Corpus(str(out / "train.spacy"))(NLP)).reference[0].text

    def write(name: str, word: str) -> None:
        for split in ("train", "dev", "test"):
            (assets / f"{name}.{split}.iob").write_text(f"{word} B-person\nleft O\n", "utf-8")

    write_corpus(out, "ner", None, None)
    write("ner", "Anna")
    assert first_word() == "Anna"
    written = (out / "train.spacy").stat().st_mtime_ns
    assert first_word() == "Anna" and (out / "train.spacy").stat().st_mtime_ns == written
    write("ner", "Nora")  # corrected
    assert first_word() == "Nora"
    write("conll2003", "Emil")
    assert first_word() == "Emil"


def test_local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / LOCAL["sentiment"].format("train")
    path.parent.mkdir(parents=True)
    path.write_bytes(lzma.compress(b'{"text": "so funny", "label": "POS"}\n'))
    [doc] = read_docs(NLP, "sentiment", "train", tmp_path, None)
    assert doc.cats["POS"] == 1 and len(doc.cats) == 5
    monkeypatch.chdir(tmp_path)
    message = f"There is no {tmp_path / 'six'}.*train.jsonl.xz. Download the data with `python -m"
    with pytest.raises(ValueError, match=message):
        read_docs(NLP, "roles", "train", Path("."), None)


def test_assets_that_were_not_downloaded(tmp_path: Path) -> None:
    for task in LOCAL:
        with pytest.raises(ValueError, match=r"There is no .*Download the data with"):
            read_docs(NLP, task, "train", None, tmp_path)
