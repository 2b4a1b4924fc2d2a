"""`elmo add` on the configs of `spacy init config`, by the commands that a user gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from spacy.cli.init_config import init_config
from spacy.kb import InMemoryLookupKB
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_elmo.weights.layout import Card

from ..pipeline.helpers import write_weights
from ..project.sentences import annotated_docs

COMPONENTS = (
    "tagger", "morphologizer", "trainable_lemmatizer", "senter", "parser", "ner", "span_finder",
    "spancat", "spancat_singlelabel", "textcat", "textcat_multilabel", "entity_linker",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Annotated texts, a knowledge base of one entity, and weights."""
    folder, vocab = tmp_path_factory.mktemp("configs"), Vocab()
    docs = list(annotated_docs(vocab))
    for doc in docs:
        linked = [(ent, "Q1" if ent.text == "Anna" else "") for ent in doc.ents]
        doc.ents = [Span(doc, ent.start, ent.end, ent.label, kb_id=link) for ent, link in linked]
    pairs = [Doc.from_docs(docs[i : i + 2]) for i in range(0, len(docs), 2)]
    for pair, first in zip(pairs, docs[::2], strict=True):
        pair.cats = first.cats
    DocBin(docs=pairs, store_user_data=True).to_disk(folder / "data.spacy")
    kb = InMemoryLookupKB(vocab, entity_vector_length=64)
    kb.add_entity(entity="Q1", freq=1, entity_vector=[1.0] * 64)
    kb.add_alias(alias="Anna", entities=["Q1"], probabilities=[1.0])
    kb.to_disk(folder / "kb")
    write_weights(folder / "weights", card=Card({"name": "tiny", "lang": "xx"}))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("optimize", "lang"), [("efficiency", "ko"), ("accuracy", "en")])
def test_from_init_config_to_a_trained_pipeline(
    folder: Path, tmp_path: Path, optimize: str, lang: str
) -> None:
    """`init config | elmo add`, then `debug config` and two steps of `train`.

    Accuracy means static vectors, which are not installed, hence ``--paths.vectors null``. For
    Korean, spaCy wants a tokenizer that needs other packages: it is that of ``xx`` here.
    """
    used = "xx" if lang == "ko" else lang
    plain = init_config(lang=used, pipeline=list(COMPONENTS), optimize=optimize)
    plain["components"]["parser"]["min_action_freq"] = 1
    plain["training"]["annotating_components"] = ["senter"]
    loader = {"@misc": "spacy.KBFromFile.v1", "kb_path": str(folder / "kb")}
    plain["initialize"]["components"]["entity_linker"] = {"kb_loader": loader}
    data = folder / "data.spacy"
    options = ["--weights", folder / "weights", "--nlp.lang", lang, "--paths.vectors", "null"]
    paths = ["--paths.train", data, "--paths.dev", data]
    steps = ["--training.max_steps", 2, "--training.eval_frequency", 2]
    config, out = tmp_path / "config.cfg", tmp_path / "out"
    for arguments in (
        ["elmo", "add", "-", config, *options],
        ["debug", "config", config, *paths],
        ["train", config, "-o", out, *paths, *steps],
    ):
        command = [sys.executable, "-m", "spacy", *map(str, arguments)]
        done = subprocess.run(
            command, input=plain.to_str(), capture_output=True, text=True, timeout=500
        )
        assert done.returncode == 0, done.stdout + done.stderr
    nlp = spacy.load(out / "model-last")
    learning = {name for name in COMPONENTS if not name.startswith("textcat")}
    makers = [nlp.get_pipe(name) for name in ("elmo", "tok2vec") if name in nlp.pipe_names]
    heard = {name for maker in makers for name in maker.listening_components}
    assert heard >= learning and makers[0].listening_components
    assert nlp("Anna swims .").has_annotation("TAG")
