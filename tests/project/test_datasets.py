"""The project's readers of published data sets, on lines in their formats."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Doc, DocBin

from spacy_elmo.text.readers import blank

from .sentences import annotated_docs, write_local_folder

pytestmark = pytest.mark.usefixtures("scripts")


def read(kind: str, path: Path, lang: str = "en") -> list[Doc]:
    from datasets import read_rows

    nlp = blank(lang, "spacy.Tokenizer.v1")
    return [make_doc(nlp) for make_doc in read_rows(kind, path)]


NUMBERED = "-DOCSTART-\tO\n\n{}\n\n1\tNUM\tO\nB\tN\tO\n"  # not by its last sentence
ANNA = ["-DOCSTART-", "Anna 1814 | Anna PER", "1 B"]
KLUE = "박\tB-PS\n은\tO\n \tO\n두\tB-QT\n \tI-QT\n번\tI-QT\n\n네\tO\n"
PLACE = "In\tO\nNew\tB-place\nYork\tI-place\n{}\n!\tO\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        # WNUT-17 has a tab between the sentences of one file, and nothing between those of others.
        ("x.iob", PLACE.format(""), ["In New York | New York place", "!"]),
        ("x.iob", PLACE.format("\t"), ["In New York | New York place", "!"]),
        # Other columns between, as in CoNLL-2003, and comments of .iob2
        ("x.iob", "Anna NNP B-NP B-PER\nbor VB B-VP O\n", ["Anna bor | Anna PER"]),
        ("x.iob2", "Anna B-PER\ni O\nLund B-LOC\n", ["Anna i Lund | Anna PER | Lund LOC"]),
        ("x.iob2", "# hej\nAnna\tB-PER\nbor\tO\n", ["Anna bor | Anna PER"]),
        # Successive numbers are no tokens, others are; blanks behind a tag are not of it.
        ("x.iob2", NUMBERED.format("1\tAnna\tB-PER\t-\t-\n2\t1814\tO\t-\t-"), ANNA),
        ("x.iob2", NUMBERED.format("0\tAnna\tB-PER\n1\t1814\tO"), ANNA),
        ("x.iob2", NUMBERED.format("7\tAnna\tB-PER\t-\n8-9\tzum\tO\t-\n8\t1814\tO\t-"), ANNA),
        ("x.iob2", NUMBERED.format("Anna\tNOUN\tB-PER \n1814\tNUM\tO"), ANNA),
        # IOB1, and a French number
        ("x.iob", "A I-PER\nB I-PER\nC B-PER\nD I-LOC\n", ["A B C D | A B PER | C PER | D LOC"]),
        ("x.iob", "1\u00a0000  NUM O\r\n", ["1\u00a0000"]),
        # Without a morphological analysis, an entity is extended to its whole token.
        ("x.tsv", f"## 1\t<박:PS>은\n{KLUE}", ["박은 두 번 | 박은 PS | 두 번 QT", "네"]),
        ("x.jsonl.xz", '{"text": "박은 두", "spans": [[0, 1, "PS"]]}\n', ["박은 두 | 박은 PS"]),
    ],
)
def test_entities(tmp_path: Path, name: str, content: str, expected: list[str]) -> None:
    data = content.encode("utf-8-sig")
    (tmp_path / name).write_bytes(lzma.compress(data) if name.endswith(".xz") else data)
    docs = read("ner", tmp_path / name, "ko" if "두" in content else "en")
    entities = [[f"{ent.text} {ent.label_}" for ent in doc.ents] for doc in docs]
    texts = [doc.text.strip() for doc in docs]
    assert [" | ".join([text, *of]) for text, of in zip(texts, entities, strict=True)] == expected
    assert all(doc.has_annotation("ENT_IOB") for doc in docs)


@pytest.mark.parametrize("line", ["Anna", "Anna\tPER", "Anna\tB-"])
def test_a_line_without_a_tag(tmp_path: Path, line: str) -> None:
    (tmp_path / "wrong.iob").write_text(line, encoding="utf-8")
    with pytest.raises(ValueError, match=r"wrong\.iob: a line must end in a tag"):
        read("ner", tmp_path / "wrong.iob")


def test_trees(tmp_path: Path) -> None:
    row = "1 They they PRON PRP _ 2 nsubj _ _\n2 sleep sleep VERB VBP _ 0 root _ _\n\n"
    row = row.replace(" ", "\t")
    path = tmp_path / "ud.test.conllu"
    path.write_text(("# text = They sleep\n" + row) * 7, encoding="utf-8")
    [first, second] = read("ud", path)
    assert [len(list(doc.sents)) for doc in (first, second)] == [5, 2]
    assert [(t.tag_, t.dep_, t.head.text) for t in second[:2]] == [
        ("PRP", "nsubj", "sleep"), ("VBP", "ROOT", "sleep")
    ]  # fmt: skip


def test_treebanks_of_other_writers(tmp_path: Path) -> None:
    """A mark of the byte order, comments alone, spaces in empty lines, gzip."""
    row = "1\tGå\tgå\tVERB\tVB\t_\t0\troot\t_\t_\n"
    text = f"# newdoc\n\n{row}  \n{row}\n".encode("utf-8-sig")
    (tmp_path / "x.conllu").write_bytes(text)
    (tmp_path / "x.conllu.gz").write_bytes(gzip.compress(text))
    for name in ("x.conllu", "x.conllu.gz"):
        [doc] = read("ud", tmp_path / name)
        assert [token.text for token in doc] == ["Gå", "Gå"]
    nodes = f"1.1\tsa{8 * chr(9)}_\n\n1-2\tGåhan{8 * chr(9)}_\n{row}# hej\n1.1\tså{8 * chr(9)}_\n"
    (tmp_path / "x.conllu").write_text(f"{nodes}{row.replace('1', '2', 1)}", encoding="utf-8")
    [doc] = read("ud", tmp_path / "x.conllu")
    assert [token.text for token in doc] == ["Gå", "Gå"]


def test_words_that_a_treebank_cannot_have(tmp_path: Path) -> None:
    row = "1\tGå\tgå\tVERB\tVB\t_\t0\troot\t_\t_\n"
    path = tmp_path / "wrong.conllu"
    # 2 → 3 → 2, which only the training of a parser would see
    circle = row.replace("1", "2").replace("0", "3") + row.replace("1", "3").replace("0", "2")
    for wrong, message in (
        (row.replace("\t", " "), "this is no word of CoNLL-U.*'1 Gå gå"),
        (row.replace("\t0\t", "\t_\t"), "each names that of its head"),  # no tree
        (row.replace("\t0\t", "\t2\t"), "each names that of its head"),
        (row.replace("1", "5"), "have the numbers from 1"),
        (row.replace("1", "a"), "have the numbers from 1"),
        (row.replace("Gå", ""), "empty string"),
        (row + circle, "must lead to 0, but there is '2"),
    ):
        path.write_text(row + "\n" + wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=rf"wrong\.conllu: .*{message}"):
            read("ud", path)


def test_labels(tmp_path: Path) -> None:
    rows = {
        "textcat.csv": 'text,category\n"Is it safe, really?",safety\n',
        "textcat.tsv": 'id\tdocument\tlabel\n1\t"좋다\t1\n2\t\t0\n3\t나쁘다\t0\n',
        "textcat.jsonl": '{"text": "Good", "label": "POS"}\n',
    }
    found = []
    for name, text in rows.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        found += [(doc.text, doc.cats) for doc in read("textcat", tmp_path / name)]
    assert found == [
        ("Is it safe, really?", {"safety": 1.0}),
        ('"좋다', {"POS": 1.0}),
        ("나쁘다", {"NEG": 1.0}),
        ("Good", {"POS": 1.0}),
    ]


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from corpora import complete_labels, downloaded_docs
    from sizes import Size

    monkeypatch.chdir(tmp_path)
    nlp = blank("en")
    folder = tmp_path / "assets" / "en"
    folder.mkdir(parents=True)
    with pytest.raises(ValueError, match=r"no assets/en/textcat.train.\*.*project assets"):
        downloaded_docs(nlp, "textcat", "en", "", Size())
    train = [nlp.make_doc(f"text {i}") for i in range(20)]
    for i, doc in enumerate(train):
        doc.cats = {"odd" if i % 2 else "even": 1.0}
    DocBin(docs=train).to_disk(folder / "textcat.train.spacy")
    (folder / "textcat.test.jsonl").write_text('{"text": "a", "label": "new"}\n' * 3, "utf-8")
    parts = downloaded_docs(nlp, "textcat", "en", "", Size(train=6, test=2))
    assert [doc.text for doc in parts["dev"]] == ["text 0", "text 10"]
    assert [doc.text for doc in parts["train"]] == [f"text {i}" for i in (1, 4, 7, 11, 14, 17)]
    assert len(parts["test"]) == 2
    complete_labels(parts)
    assert parts["train"][0].cats == {"even": 0.0, "odd": 1.0}
    assert parts["test"] == []  # no text has a label of the training set
    (folder / "ner.train.doc").write_text("", encoding="utf-8")
    (folder / "ner.test.doc").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"known are \.iob, \.iob2, \.tsv, \.jsonl"):
        downloaded_docs(nlp, "ner", "en", "", Size())


def test_names_of_tasks() -> None:
    from datasets import find_tasks

    assert find_tasks("tagger, ner,tagger") == ["tagger", "ner"]
    for names in ("tager", "tagger,", ""):
        with pytest.raises(
            ValueError, match=r"no task .* \(--vars\.tasks\); known: tagger, parser"
        ):
            find_tasks(names)


def test_too_few_labels() -> None:
    """Which spaCy cannot train, or measure, after other tasks have been trained."""
    from datasets import check_labels

    docs = list(annotated_docs(blank("en").vocab))
    nothing = Doc(docs[0].vocab, words=["a"], tags=["X"], deps=["ROOT"], heads=[0])
    nothing.cats = {"money": 1.0, "nature": 0.0}
    for task in ("tagger", "parser", "ner", "textcat"):
        check_labels(task, {"train": docs, "test": docs})
    for task, message in (
        ("tagger", "no other label than X in the 1 texts of the train set"),
        ("ner", "no label in the 1 texts of the train set"),
        ("textcat", "no other label than money"),
    ):
        with pytest.raises(ValueError, match=f"{task}: there is {message}"):
            check_labels(task, {"train": [nothing], "test": docs})
    check_labels("parser", {"train": [nothing], "test": docs})
    for task, test in (("ner", [nothing]), ("textcat", [])):
        with pytest.raises(ValueError, match=f"{task}: there is no label .* of the test set"):
            check_labels(task, {"train": docs, "test": test})


def test_a_local_folder(tmp_path: Path, fails: Callable[..., str]) -> None:
    """English data from a folder are read at each size; tiny does not take its own sentences."""
    from corpora import main

    write_local_folder(tmp_path / "data")
    main(tmp_path / "run", size="tiny", local=str(tmp_path / "data"))
    expected = list(annotated_docs(blank("en").vocab))

    def rows(docs: Iterable[Doc], *attributes: str) -> list[Any]:
        """What the tokens of all Docs have, however they are divided."""
        return [row for doc in docs for row in doc.to_array(attributes).tolist()]

    def written(kind: str) -> Iterable[Doc]:
        path = tmp_path / "run" / "corpus" / kind / "train.spacy"
        return DocBin().from_disk(path).get_docs(expected[0].vocab)

    tree = ("TAG", "POS", "DEP", "HEAD")
    assert rows(written("ud"), *tree) == rows(expected, *tree)
    assert rows(written("ner"), "ENT_IOB", "ENT_TYPE") == rows(expected, "ENT_IOB", "ENT_TYPE")
    assert [doc.cats for doc in written("textcat")] == [doc.cats for doc in expected]
    for split, step in [("train", 1), ("dev", 3)]:
        text = (tmp_path / "run" / "text" / f"{split}.txt").read_text(encoding="utf-8")
        assert text.splitlines() == [doc.text.strip() for doc in expected[::step]]
    # A test set whose labels are not published
    (tmp_path / "data" / "ner" / "wnut17" / "test.iob.xz").write_bytes(lzma.compress(b"Anna\tO\n"))
    said = fails(main, tmp_path / "run", size="tiny", local=str(tmp_path / "data"))
    assert "ner: there is no label" in said


def test_raw_text_without_spaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str], capsys: Any
) -> None:
    """Has no line of eight words; lines of a user's own text are all read."""
    import corpora
    import language_data

    write_local_folder(tmp_path / "data")
    (tmp_path / "assets").mkdir()
    (tmp_path / "data" / "ud" / "UD_English-EWT").rename(tmp_path / "assets" / "zh")
    for path in (tmp_path / "assets" / "zh").iterdir():
        path.rename(path.with_name(f"ud.{path.name}"))
    (tmp_path / "assets" / "zh" / "text.txt").write_text("我们在河边散步。\n" * 100, "utf-8")
    monkeypatch.chdir(tmp_path)
    given = {"lang": "zh", "tokenizer": "spacy.Tokenizer.v1", "tasks": "tagger"}
    corpora.main(tmp_path / "run", **given)
    said = "only lines of 8 words or more"
    assert said in " ".join(capsys.readouterr().out.split())
    assert said in fails(language_data.main, tmp_path / "run", **given)
    (tmp_path / "assets" / "zh" / "text.txt").rename(tmp_path / "own.txt")
    said = fails(language_data.main, tmp_path / "run", text="own.txt", **given)
    assert "spacy.zh.ChineseTokenizer" in said


def test_raw_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import read_paragraphs

    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "assets" / "nb"
    folder.mkdir(parents=True)
    lines = [f"Dette er en setning med minst åtte ord {i}" for i in range(100)]
    texts = (json.dumps({"text": f"Kort\n{line}"}) for line in lines)
    (folder / "text.jsonl").write_text("\n".join(texts), encoding="utf-8")
    held_out = list(read_paragraphs("dev", "nb", ""))
    assert held_out == [lines[49], lines[99]]
    assert list(read_paragraphs("train", "nb", "")) == [x for x in lines if x not in held_out]
    (folder / "text.modern.txt").write_text("Moderne tekst som også har minst åtte ord\n" * 2)
    both = list(read_paragraphs("train", "nb", ""))
    assert len(both) == 100 and both[1] == both[3] != both[0] == lines[0]
