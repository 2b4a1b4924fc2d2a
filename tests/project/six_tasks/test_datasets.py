"""The data as Docs, from each format."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from paper_tasks.datasets import ASSETS, MAKE, tokenizer
from paper_tasks.roles import roles_of
from spacy.tokens import Doc

NLP = tokenizer()


# Universal Propositions: roles in columns of their own
UP = """\
# text = Anna sold it, happy.
1\tAnna\t_\t_\t_\t_\t2\tnsubj\t_\t_\t_\tARG0\tARG1
2\tsold\t_\t_\t_\t_\t0\troot\t_\t_\tsell.01\tV\t_
3\tit\t_\t_\t_\t_\t2\tobj\t_\tSpaceAfter=No\t_\tARG1\t_
4\thappy\t_\t_\t_\t_\t2\tadvcl\t_\tSpaceAfter=No\thappy.01\t_\tV

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
    docs = {task: MAKE[task](NLP, each) for task, each in found.items()}
    assert all(isinstance(doc, Doc) for doc in docs.values())
    roles = [(span.text, span.label_) for span in roles_of(docs["roles"], 1)]
    assert roles == [("Anna", "ARG0"), ("sold", "V"), ("it", "ARG1")]
