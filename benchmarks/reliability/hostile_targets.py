"""Every kind of file that the project reads, sound, and how it is read: for `hostile.py`."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import spacy
import torch
from mutations import PACKERS
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_elmo import encode
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import IndexedSentences
from spacy_elmo.bilm.static_vectors import WordTable
from spacy_elmo.encoding import job as encoding_job
from spacy_elmo.encoding.rows import RowFiles, make_docs
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining.config import PretrainConfig, read_config
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.pretraining.word_table import TABLE, read_table, write_table
from spacy_elmo.text.readers import tokenize_files
from spacy_elmo.text.shards import Shards
from spacy_elmo.weights.convert.published import write_published
from spacy_elmo.weights.convert.source import read_source
from spacy_elmo.weights.find import find_weights
from spacy_elmo.weights.layout import STATISTICS, Card
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.statistics import compute_statistics

TEXT = "The bank of the river .\nA bank with money .\nNobody answered .\n" * 5
CONFIG = BiLMConfig(filters=((1, 4), (2, 6)), projection_dim=6, dim=8, n_layers=2, char_dim=4)


@dataclass
class Target:
    """Files that are read together.

    Attributes:
        folder: the sound ones.
        read: reads a copy of the folder; returns what must be finite. It may write into the
            directory `saved_beside` the copy.
        damaged: patterns of the files that are damaged.
    """

    folder: Path
    read: Callable[[Path], torch.Tensor]
    damaged: tuple[str, ...] = ("**/*",)


def saved_beside(folder: Path) -> Path:
    """Where what was read from a copy is written again."""
    return folder.with_name("saved")


def make_targets(root: Path) -> dict[str, Target]:
    """Every kind of file that the project reads."""
    torch.manual_seed(0)
    names = "own published zipped vectors component pipeline run texts corpus job"
    own, published, zipped, vectors, component, pipeline, run, texts, corpus, job = folders = [
        root / name for name in names.split()
    ]
    for folder in {*folders} - {component, pipeline, run}:
        folder.mkdir(parents=True)
    model, vocab = BiLM(CONFIG).eval(), Vocabulary([*SPECIALS, *dict.fromkeys(TEXT.split())])
    head = SoftmaxHead(len(vocab), CONFIG.projection_dim)
    source = {"name": "A text", "url": "https://example.org", "license": "CC0"}
    card = Card({"name": "a", "lang": "en", "sources": [source]}, {"LICENSE": "CC0\n"})
    save_bilm(model, own, card)
    save_head(head, vocab, own)
    sentences = [line.split() for line in TEXT.splitlines()]
    statistics = compute_statistics(model, IndexedSentences(sentences))
    (own / STATISTICS).write_bytes(statistics.to_bytes())
    write_published(model, published, head.state_dict())
    vocab.write(published / "vocab.txt")
    (published / "vocab.txt.gz").write_bytes(gzip.compress((published / "vocab.txt").read_bytes()))
    (published / "vocab.txt").unlink()
    with zipfile.ZipFile(zipped / "weights.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for file in published.iterdir():
            packed.write(file, file.name)
    table = WordTable(vocab.words, np.arange(len(vocab)), np.ones((len(vocab), 6), np.float32))
    write_table(table, vectors / TABLE)
    sizes = {"projection_dim": 6, "dim": 8, "n_layers": 2, **table.sizes()}
    looked_up = BiLM(BiLMConfig.from_dict({"token_encoder": "vectors", **sizes}))
    looked_up.word_vectors.fill(table)
    save_bilm(looked_up, vectors)
    nlp, tokenizer = spacy.blank("en"), spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": str(own)}})
    nlp("Load it .")
    nlp.get_pipe("elmo").to_disk(component, exclude=["vocab"])
    make_pipeline(own).to_disk(pipeline)
    (texts / "a.txt").write_text(TEXT)
    (texts / "b.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    (texts / "c.txt.xz").write_bytes(lzma.compress(TEXT.encode()))
    (texts / "d.jsonl").write_text(
        "".join(json.dumps({"text": t}) + "\n" for t in TEXT.split("\n"))
    )
    if ".zst" in PACKERS:
        (texts / "f.txt.zst").write_bytes(PACKERS[".zst"].compress(TEXT.encode()))
    DocBin(docs=[spacy.blank("en")(t) for t in TEXT.split("\n")]).to_disk(texts / "e.spacy")
    (texts / "meta.json").write_text('{"lang": "en"}')
    pretrain(PretrainConfig.from_dict(run_settings(texts / "a.txt", 2)), run, quiet=True)
    shutil.copy(texts / "e.spacy", corpus / "a.spacy")
    conllu = "".join(f"{i}\t{word}\t_\n" for i, word in enumerate(sentences[0], 1)) + "\n"
    (corpus / "b.conllu").write_text(conllu * 3)
    (corpus / "c.conllu.gz").write_bytes(gzip.compress(conllu.encode()))
    with suppress(ImportError):
        import pyarrow.parquet

        table = pyarrow.table({"tokens": sentences})
        pyarrow.parquet.write_table(table, corpus / "d.parquet")
        (corpus / "with_ids").mkdir()
        table = table.append_column("id", pyarrow.array(map(str, range(len(sentences)))))
        pyarrow.parquet.write_table(table, corpus / "with_ids" / "e.parquet")
    (job / "corpus.txt").write_text(TEXT)
    interrupted = patch.object(encoding_job, "join", lambda *each: sys.exit("before its end"))
    with suppress(SystemExit), interrupted:
        encode(job / "corpus.txt", job / "out.npy", weights=str(own))
    return {
        "own": Target(own, read_weights),
        "published": Target(published, convert_weights),
        "zip": Target(zipped, lambda folder: convert_weights(folder / "weights.zip")),
        "vectors": Target(vectors, read_vectors),
        "component": Target(component, lambda folder: read_component(nlp, folder)),
        "pipeline": Target(pipeline, read_pipeline, ("config.cfg", "elmo*/**/*")),
        "run": Target(run, lambda folder: read_run(texts / "a.txt", folder)),
        "texts": Target(texts, lambda folder: read_texts(tokenizer, folder)),
        "corpus": Target(corpus, lambda folder: read_corpus(tokenizer, folder)),
        "job": Target(job, lambda folder: resume_job(own, folder)),
    }


def make_pipeline(weights: Path) -> Language:
    """A pipeline with a listener, which has a mix of its own, and with surprisals."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": str(weights)}})
    listener = {"@architectures": "spacy-elmo.ElmoListener.v1", "initial_weights": [1.0, 0.0, 0.5]}
    tagger = nlp.add_pipe("tagger", config={"model": {"tok2vec": listener}})
    tagger.add_label("X")
    nlp.add_pipe("elmo_surprisal", config={"weights": str(weights)})
    nlp.initialize()
    return nlp


def run_settings(text: Path, max_steps: int) -> dict[str, Any]:
    training = {"max_steps": max_steps, "warmup_steps": 0, "decay_steps": 0, "batch_words": 40}
    return {
        "paths": {"train": str(text), "dev": str(text)},
        "model": {**CONFIG.to_dict()},
        "vocab": {"min_count": 1},
        "softmax": {"kind": "full"},
        "training": training,
    }


def read_weights(path: Path) -> torch.Tensor:
    weights = find_weights(path)
    weights.config(), weights.card(), weights.check(), weights.files()
    weights.statistics()
    model = weights.load()
    if weights.has_head():
        load_head(path)
    return torch.cat([part.flatten() for part in model.read([["The", "bank"], [], ["é" * 60]])[0]])


def convert_weights(path: Path) -> torch.Tensor:
    saved = saved_beside(path if path.is_dir() else path.parent)
    saved.mkdir()
    read_source([path]).save(saved)
    return read_weights(saved)


def read_vectors(path: Path) -> torch.Tensor:
    model = BiLM(find_weights(path).config())
    model.word_vectors.fill(read_table(path / TABLE))
    return torch.cat([read_weights(path).flatten(), model.encode(["The", "unheard"]).flatten()])


def read_component(nlp: Language, path: Path) -> torch.Tensor:
    component = nlp.create_pipe("elmo", config={"model": {"weights": "none"}})
    component.from_disk(path, exclude=["vocab"])
    doc = component(nlp.make_doc("The bank ."))
    component.to_disk(saved_beside(path), exclude=["vocab"])
    return torch.from_numpy(doc.tensor)


def read_pipeline(path: Path) -> torch.Tensor:
    nlp = spacy.load(path)
    doc = nlp("The bank .")
    nlp.to_disk(saved_beside(path))
    surprisals = [token._.surprisal or 0.0 for token in doc]
    return torch.cat([torch.from_numpy(doc.tensor).flatten(), torch.tensor(surprisals)])


def read_run(text: Path, path: Path) -> torch.Tensor:
    """Read the files of a run, and resume a copy of it for two steps."""
    read_log(path / "log.jsonl")
    read_config(path / "pretrain.cfg")
    resumed = saved_beside(path)
    shutil.copytree(path, resumed)
    settings = run_settings(text, 4)
    del settings["model"]  # it is that of the run
    pretrain(PretrainConfig.from_dict(settings), resumed, resume=True, quiet=True)
    return read_weights(resumed / "model-last")


def read_texts(nlp: Language, path: Path) -> torch.Tensor:
    shards = Shards(path)
    shards.card()
    n = sum(len(words) for file in shards.files() for words in shards.sentences_in(file))
    texts = [path / "d.jsonl", path / "e.spacy"]
    return torch.tensor(float(n + sum(map(len, tokenize_files(nlp, texts, 1)))))


def read_corpus(nlp: Language, path: Path) -> torch.Tensor:
    n = 0
    folders = [path, *path.glob("with_ids")]
    for _, rows, _ in chain.from_iterable(RowFiles(str(f)).chunks(10) for f in folders):
        n += len(list(make_docs(nlp, rows)))
    return torch.tensor(float(n))


def resume_job(weights: Path, path: Path) -> torch.Tensor:
    resumed = saved_beside(path)
    shutil.copytree(path, resumed)
    encode(resumed / "corpus.txt", resumed / "out.npy", weights=str(weights), resume=True)
    return torch.from_numpy(np.load(resumed / "out.npy"))
