"""Files from strangers: each loads and behaves, or ends in one error that names it."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.word_cache import WordCache
from spacy_elmo.pretraining.checkpoint import Progress, read_checkpoint
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.text.files import texts_in
from spacy_elmo.text.shards import Shards
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.tensors import write_tensors

from ..pipeline.helpers import make_nlp, write_weights

NESTED = "[" * 100_000


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_weights(tmp_path / "weights")


def change_state(pipeline: Path, **changes: Any) -> None:
    """Change what a saved elmo component says of its biLM."""
    path = pipeline / "elmo" / "model"
    model = srsly.msgpack_loads(path.read_bytes())
    [number] = [i for i, shim in enumerate(model["shims"]) if shim and shim[0]]
    shim = srsly.msgpack_loads(model["shims"][number][0])
    shim["state"] = srsly.msgpack_dumps(srsly.msgpack_loads(shim["state"]) | changes)
    model["shims"][number][0] = srsly.msgpack_dumps(shim)
    path.write_bytes(srsly.msgpack_dumps(model))


@pytest.mark.parametrize("name", ["../../outside", "{root}/outside"])
def test_documents_cannot_name_other_files(weights: Path, tmp_path: Path, name: str) -> None:
    name = name.format(root=tmp_path)
    make_nlp(weights).to_disk(tmp_path / "nlp")
    change_state(tmp_path / "nlp", card={"documents": {name: "overwritten"}})
    with pytest.raises(ValueError, match="has a document"):
        spacy.load(tmp_path / "nlp")
    with pytest.raises(ValueError, match="has a document"):
        Card({}, {name: "overwritten"})
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("meta", [{"sources": ["a"]}, {"license": ["CC"]}])
def test_wrong_types_in_a_card(weights: Path, meta: dict[str, Any]) -> None:
    (weights / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match=rf"meta.json.*card's '{next(iter(meta))}'"):
        find_weights(weights).card()


NODE = {"index": 0, "name": "x", "dims": {}, "refs": {}}
MODEL: dict[str, Any] = {"nodes": [NODE], "attrs": [{}], "params": [{}], "shims": [[]]}


@pytest.mark.parametrize(
    "data",
    [
        b"", None, [], {"shims": 5}, {"shims": []}, MODEL | {"nodes": [5]}, MODEL,
        MODEL | {"shims": [[5]]},
    ],
)  # fmt: skip
def test_a_saved_component_that_is_none(weights: Path, tmp_path: Path, data: Any) -> None:
    """Read by spaCy, and as weights; None: a part of a sound one."""
    make_nlp(weights).to_disk(tmp_path / "nlp")
    file = tmp_path / "nlp" / "elmo" / "model"
    part = file.read_bytes()[:5000] if data is None else data
    file.write_bytes(part if isinstance(part, bytes) else srsly.msgpack_dumps(part))
    with pytest.raises(ValueError, match=r"Cannot read the component 'elmo' from .*nlp"):
        spacy.load(tmp_path / "nlp")
    with pytest.raises(ValueError, match=r"Cannot read the elmo component .*nlp/elmo/model"):
        find_weights(tmp_path / "nlp").load()


@pytest.mark.parametrize("name", ["config", "card", "weights", "statistics"])
@pytest.mark.parametrize("value", [5, {"a": 5, "meta": {"sources": ["a"]}}])
def test_a_saved_bilm_with_parts_of_other_types(
    weights: Path, tmp_path: Path, name: str, value: Any
) -> None:
    make_nlp(weights).to_disk(tmp_path / "nlp")
    change_state(tmp_path / "nlp", **{name: value})
    with pytest.raises(ValueError, match=rf"component.*: .*({name}|settings)"):
        spacy.load(tmp_path / "nlp")
    weights_ = find_weights(tmp_path / "nlp")
    with pytest.raises(ValueError, match=rf"component.*: .*({name}|settings)"):
        weights_.load(), weights_.card(), weights_.statistics()


def test_deeply_nested_json_of_a_run(tmp_path: Path) -> None:
    write_tensors({}, tmp_path / "checkpoint", {"progress": NESTED, "config": "{}"})
    with pytest.raises(ValueError, match="Cannot read the checkpoint"):
        read_checkpoint(tmp_path / "checkpoint")
    (tmp_path / "log.jsonl").write_text(NESTED + '\n{"step": 1}\n')
    with pytest.raises(ValueError, match="Line 1 of the log"):
        read_log(tmp_path / "log.jsonl")
    (tmp_path / "a.jsonl").write_text(NESTED + "\n")
    with pytest.raises(ValueError, match=r"Line 1 of .*a\.jsonl"):
        list(texts_in(tmp_path / "a.jsonl"))
    (tmp_path / "meta.json").write_text(NESTED)
    (tmp_path / "a.txt").touch()
    with pytest.raises(ValueError, match=r"Cannot read .*meta\.json"):
        Shards(tmp_path / "a.txt").card()


def large_projection(model: BiLM) -> None:
    for parameter in (*model.char_cnn.projection.parameters(), model.lstm[1].weight_ih):
        parameter.fill_(-1e38)


def large_byte(model: BiLM) -> None:
    model.char_cnn.embedding.weight["말".encode()[-1]] = 3e37


def large_warm_state(model: BiLM) -> None:
    h, c = model.initial_state("zero")
    model.warm_h, model.warm_c = h, torch.full_like(c, 3e38)


@pytest.mark.parametrize("change", [large_projection, large_byte, large_warm_state])
def test_weights_that_overflow(weights: Path, change: Callable[[BiLM], None]) -> None:
    """They are finite, but what they compute is not."""
    model = load_bilm(weights)
    with torch.no_grad():
        change(model)
    save_bilm(model, weights)
    with pytest.raises(ValueError, match=r"weights\.safetensors: tensor .* far too large"):
        load_bilm(weights)


@pytest.mark.parametrize(
    ("name", "value"),
    [("w", np.nan), ("gamma", -3e38)],
)
def test_a_mix_that_is_not_finite(weights: Path, name: str, value: float) -> None:
    nlp = make_nlp(weights)
    mix = nlp.get_pipe("elmo").model.get_ref("mix")
    nlp("A text.")
    broken = mix.get_param(name).copy()
    broken[0] = value
    mix.set_param(name, broken)
    with pytest.raises(ValueError, match="expected 3 finite ones"):
        nlp("Another text.")


@pytest.mark.parametrize(
    "changes",
    [
        {"step": -1}, {"position": [1]}, {"position": ["0", 0, 0, 0]},
        {"card": {"documents": {"../x": ""}}}, {"unknown": 1},
    ],
)  # fmt: skip
def test_a_checkpoint_with_wrong_metadata(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "checkpoint.safetensors"
    write_tensors({}, path, {"progress": json.dumps(asdict(Progress()) | changes), "config": "{}"})
    with pytest.raises(ValueError, match=r"Cannot read the checkpoint .*checkpoint\.safetensors"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "word",
    ["{}", "word{}", "{}" + "말" * 20, "{}" + "\U0001f600" * 90],
    ids=["short", "ascii", "hangul", "long"],
)
def test_the_word_cache_counts_its_words(word: str) -> None:
    cache, size, n_words = WordCache(max_bytes=2**20), 0, 0
    tracemalloc.start()
    try:
        for start in range(0, 20_000, 100):
            words = [word.format(i) for i in range(start, start + 100)]
            cache.lookup(words, lambda words: torch.zeros(len(words), 4))
            size = max(size, tracemalloc.get_traced_memory()[0] + cache._table.nbytes)
            n_words = max(n_words, len(cache))
    finally:
        tracemalloc.stop()
    assert size <= 2**20
    assert n_words > 2_000 or len(word) > 90
