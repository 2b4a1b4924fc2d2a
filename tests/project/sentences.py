"""The annotated sentences of the project, for the recipes to learn from."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from runpy import run_path

import spacy
from spacy.tokens import Doc

SCRIPTS = Path(__file__).parents[2] / "project" / "scripts"
_NAMES = run_path(str(SCRIPTS / "sentences.py"))

TOPICS = _NAMES["TOPICS"]
annotated_docs = _NAMES["annotated_docs"]


def write_local_folder(folder: Path) -> None:
    """The sentences as English data for `--vars.local`: in published formats, compressed."""
    docs = list(annotated_docs(spacy.blank("en").vocab))
    for split, step in [("train", 1), ("dev", 3), ("test", 3)]:
        some = docs[::step]
        texts = {
            f"ud/UD_English-EWT/{split}.conllu": "".join(map(to_conllu, some)),
            f"ner/wnut17/{split}.iob": "".join(map(to_iob, some)),
            f"textcat/banking77/{split}.jsonl": "".join(map(to_json, some)),
            f"lm/enwiki/{'valid' if split == 'dev' else split}.txt": "".join(
                f"{doc.text}\n" for doc in some
            ),
        }
        for name, text in texts.items():
            path = folder / f"{name}.xz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(lzma.compress(text.encode()))


def to_conllu(doc: Doc) -> str:
    lines = [f"# text = {doc.text}"]
    for t in doc:
        head, relation = (0, "root") if t.head == t else (t.head.i + 1, t.dep_)
        values = (t.i + 1, t.text, "_", t.pos_, t.tag_, t.morph or "_", head, relation, "_", "_")
        lines.append("\t".join(map(str, values)))
    return "\n".join(lines) + "\n\n"


def to_iob(doc: Doc) -> str:
    tags = [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc]
    return "".join(f"{t.text}\t{tag}\n" for t, tag in zip(doc, tags, strict=True)) + "\n"


def to_json(doc: Doc) -> str:
    return json.dumps({"text": doc.text, "label": max(doc.cats, key=doc.cats.__getitem__)}) + "\n"
