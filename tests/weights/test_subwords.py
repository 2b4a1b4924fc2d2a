"""Static vectors of n-grams beside weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.find import find_weights
from spacy_elmo.weights.layout import SUBWORDS
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.subwords import FloretSettings, Subwords

TABLE = np.random.default_rng(0).normal(size=(31, 5)).round(4).astype("float32")
SETTINGS = FloretSettings(min_n=3, max_n=4, n_hashes=2, hash_seed=77)
SMALL: dict[str, Any] = {"filters": [[1, 4], [2, 8]], "char_dim": 4, "projection_dim": 8, "dim": 16}


@pytest.fixture
def floret_file(tmp_path: Path) -> Path:
    lines = ["31 5 3 4 2 77 < >"]
    lines += [" ".join(map(str, [row, *values])) for row, values in enumerate(TABLE)]
    file = tmp_path / "table.floret"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_file_of_floret_is_read(floret_file: Path) -> None:
    found = Subwords.from_floret(floret_file)
    assert found.settings == SETTINGS
    assert np.array_equal(found.table, TABLE)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-40], "announces 31 rows of 5 numbers|number of columns"),
        (lambda text: text.replace("\n3 ", "\n4 "), "not numbered in order"),
        (lambda text: text.replace("< >", ""), "must have the 8 settings"),
        (lambda text: "31 5\n", "must have the 8 settings"),
        (lambda text: text.replace("\n0 ", "\n0 nan", 1), "announces|number of columns|convert"),
    ],
)
def test_a_damaged_file_of_floret_is_named(floret_file: Path, damage: Any, message: str) -> None:
    floret_file.write_text(damage(floret_file.read_text("utf-8")), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"table\.floret(.|\n)*({message})"):
        Subwords.from_floret(floret_file)


def test_rows_are_stored_in_8_bits() -> None:
    table = TABLE * np.logspace(-30, 30, 31, dtype=np.float32)[:, np.newaxis]
    table[0] = 0
    data = Subwords(SETTINGS, table).to_bytes()
    found = Subwords.from_bytes(data, "here")
    assert found.settings == SETTINGS
    assert (np.abs(found.table - table) <= np.abs(table).max(axis=1, keepdims=True) / 250).all()
    assert load(data)["rows"].dtype == torch.int8
    assert Subwords.from_bytes(found.to_bytes(), "here").table == pytest.approx(found.table, 1e-6)


def test_the_size_of_a_table() -> None:
    """A byte for each number, and four for the scale of each row."""
    for rows, dim in ((20_000, 64), (50_000, 128)):
        table = np.zeros((rows, dim), dtype=np.float32)
        n_bytes = len(Subwords(SETTINGS, table).to_bytes())
        assert rows * (dim + 4) < n_bytes < rows * (dim + 4) + 1000


def test_they_lie_beside_the_weights(tmp_path: Path) -> None:
    save_bilm(BiLM(BiLMConfig.from_dict(SMALL)), tmp_path)
    weights = find_weights(tmp_path)
    assert weights.subwords() is None
    (tmp_path / SUBWORDS).write_bytes(Subwords(SETTINGS, TABLE).to_bytes())
    found = weights.subwords()
    assert found is not None and found.settings == SETTINGS
    np.testing.assert_allclose(found.table, TABLE, atol=0.02)
    assert tmp_path / "subwords.safetensors" in weights.files()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("rows", torch.zeros(3, 5, dtype=torch.int8)), ("rows", torch.zeros(31)),
        ("scales", torch.full((31, 1), torch.nan)), ("settings", torch.tensor([7])),
        ("settings", torch.tensor(list(b'{"min_n": 0}'))),
        ("settings", torch.tensor(list(b'{"max": 5}'))), ("settings", torch.tensor(list(b"[]"))),
    ],
)  # fmt: skip
def test_damaged_ones_are_named(tmp_path: Path, name: str, wrong: torch.Tensor) -> None:
    save_bilm(BiLM(BiLMConfig.from_dict(SMALL)), tmp_path)
    tensors = load(Subwords(SETTINGS, TABLE).to_bytes())
    for damaged in (
        save(tensors | {name: wrong}),
        save({k: v for k, v in tensors.items() if k != name}),
    ):
        (tmp_path / "subwords.safetensors").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"subwords\.safetensors"):
            find_weights(tmp_path).subwords()
    (tmp_path / "subwords.safetensors").write_bytes(b"short")
    with pytest.raises(ValueError, match=r"subwords\.safetensors"):
        find_weights(tmp_path).subwords()
