from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from spacy.strings import StringStore
from spacy.vectors import Vectors

from spacy_elmo.bilm.char_cnn import word_ids
from spacy_elmo.bilm.characters import BOS, EOS
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import id_tensor
from spacy_elmo.bilm.subwords import SubwordIds, Subwords, SubwordSettings, round_rows
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.native import from_bytes, save_bilm, to_bytes
from spacy_elmo.weights.published.options import to_options

WORDS = ["", "a", "of", "dogs", "Seventeen", "über", "한국어", "😀😀", "counter-revolutionaries"]
SMALL: dict[str, Any] = {"filters": [[1, 4], [2, 8]], "char_dim": 4, "projection_dim": 8, "dim": 16}
ROWS = {"n_rows": 97, "vector_dim": 6}


def make_model(**settings: Any) -> BiLM:
    """With subwords whose projection is not zero."""
    torch.manual_seed(0)
    model = BiLM(BiLMConfig.from_dict(SMALL | {"subwords": ROWS | settings})).eval()
    assert model.char_cnn.subwords is not None
    torch.nn.init.normal_(model.char_cnn.subwords.projection.weight)
    return model


@pytest.mark.parametrize(
    "settings",
    [{}, {"min_n": 2, "max_n": 2}, {"min_n": 3, "max_n": 7, "n_hashes": 4, "hash_seed": 5},
     {"n_hashes": 1, "start": "^", "end": ""}],
)  # fmt: skip
def test_vectors_are_spacys_of_floret(settings: dict[str, Any]) -> None:
    ours = SubwordSettings(**{**ROWS, **settings})
    subwords, data = Subwords(ours, 8), np.random.default_rng(0).normal(size=(97, 6))
    subwords.table.data = torch.from_numpy(data.astype("float32"))
    theirs = Vectors(
        strings=StringStore(WORDS), data=data.astype("float32"), mode="floret",
        minn=ours.min_n, maxn=ours.max_n, hash_count=ours.n_hashes, hash_seed=ours.hash_seed,
        bow=ours.start, eow=ours.end,
    )  # fmt: skip
    words = WORDS[1:]  # spaCy has a vector of zeros for the empty word
    ids = id_tensor(*SubwordIds(6, 50, ours)(words))
    found = subwords.mean(ids[..., 1:].flatten(1)).detach().numpy()
    np.testing.assert_allclose(found, theirs.get_batch(words), atol=1e-6)


def test_boundaries_have_no_subwords_and_long_words_are_cut() -> None:
    settings = SubwordSettings(**ROWS)
    to_ids = SubwordIds(6, 20, settings)
    ids, _ = to_ids([BOS, EOS, "x" * 18, "x" * 5000, "\ud800"])
    assert ids[:2, :, 1:].sum() == 0
    assert np.array_equal(ids[2], ids[3])
    assert (ids[4, :, 1:] > 0).sum() == settings.n_hashes  # <> is all that is left
    assert ids[..., 1:].max() <= settings.n_rows


def test_a_word_is_the_same_in_any_company() -> None:
    model = make_model()
    alone = torch.cat([model.encode([word]) for word in WORDS])
    together = model.encode([*WORDS, "x" * 200])[: len(WORDS)]
    torch.testing.assert_close(alone, together, atol=1e-5, rtol=0)


def test_new_subwords_change_nothing() -> None:
    with_subwords = BiLM(BiLMConfig.from_dict(SMALL | {"subwords": ROWS})).eval()
    without = BiLM(BiLMConfig.from_dict(SMALL)).eval()
    without.load_state_dict(with_subwords.state_dict(), strict=False)
    assert torch.equal(without.encode(WORDS), with_subwords.encode(WORDS))


def test_all_of_them_are_trained() -> None:
    model = make_model()
    model.encode(WORDS).square().sum().backward()
    subwords = model.char_cnn.subwords
    assert subwords is not None and subwords.table.grad is not None
    hit = subwords.table.grad.abs().sum(dim=1) > 0
    ids, _ = word_ids(model.config)(WORDS)
    assert set(np.flatnonzero(hit.numpy())) == set(ids[..., 1:][ids[..., 1:] > 0] - 1)


def test_weights_without_subwords_stay_what_they_were() -> None:
    config = BiLMConfig.from_dict(SMALL)
    assert "subwords" not in config.to_dict()
    ids, _ = word_ids(config)(WORDS)
    assert ids.dtype == np.int16 and ids.ndim == 2


@pytest.mark.parametrize("half", [False, True])
def test_saved_weights_are_the_same_and_rounded_rows_have_8_bits(
    tmp_path: Path, half: bool
) -> None:
    model = make_model(n_rows=2000)
    save_bilm(model, tmp_path, half=half)
    found = load_bilm(tmp_path)
    assert found.config == model.config and find_weights(tmp_path).config() == model.config
    find_weights(tmp_path).check()
    stored = load_file(tmp_path / "weights.safetensors")["char_cnn.subwords.table"]
    assert stored.dtype == (torch.int8 if half else torch.float32)
    assert model.char_cnn.subwords is not None and found.char_cnn.subwords is not None
    table = model.char_cnn.subwords.table.detach()
    error = (found.char_cnn.subwords.table - table).abs().max(dim=1).values
    assert bool((error <= (table.abs().max(dim=1).values / 250 if half else 0)).all())
    again = from_bytes(found.config, to_bytes(found))  # in a pipeline: not rounded a second time
    assert all(map(torch.equal, again.state_dict().values(), found.state_dict().values()))
    assert len(to_bytes(found)) < (30_000 if half else 70_000)


def test_rounding_twice_is_rounding_once() -> None:
    table = torch.randn(500, 16) * torch.logspace(-30, 30, 500).unsqueeze(1)
    table[0] = 0
    once = round_rows(table)
    assert torch.equal(round_rows(once), once)
    assert bool(((once - table).abs() <= table.abs().amax(dim=1, keepdim=True) / 250).all())


def test_damaged_scales_are_refused(tmp_path: Path) -> None:
    save_bilm(make_model(), tmp_path, half=True)
    path, name = tmp_path / "weights.safetensors", "char_cnn.subwords.table_scale"
    tensors = load_file(path)
    for wrong in (tensors[name][:5], torch.full_like(tensors[name], torch.nan)):
        save_file(tensors | {name: wrong.contiguous()}, path)
        with pytest.raises(ValueError, match=r"char_cnn\.subwords\.table"):
            load_bilm(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"min_n": 6}, "max_n is 5; it must not be smaller than min_n"), ({"rows": 3}, "unknown"),
     ({"n_rows": 0}, "n_rows is 0"), ({"start": "<w>"}, "start")],
)  # fmt: skip
def test_wrong_settings_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BiLMConfig.from_dict(SMALL | {"subwords": changes})


def test_no_other_layout_and_no_other_encoder_has_them() -> None:
    config = make_model().config
    with pytest.raises(ValueError, match="this one has subwords"):
        to_options(config)
    with pytest.raises(ValueError, match="subwords"):
        replace(config, filters=(), char_dim=16, token_encoder="vectors")
