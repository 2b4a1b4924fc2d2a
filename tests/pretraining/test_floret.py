"""Static vectors of n-grams that a run lets floret train."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.find import find_weights
from spacy_elmo.weights.layout import SUBWORDS

from .helpers import make_config, prose, stop_after, write_text


def test_a_run_trains_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("floret")
    text = write_text(tmp_path / "text.txt", prose() * 9)
    table = {"epochs": 3, "rows": 1000, "dim": 24}
    config = make_config(text, text, {f"training.subword_{k}": v for k, v in table.items()})
    pretrain(config, tmp_path / "one", quiet=True)
    with monkeypatch.context() as patch:
        stop_after(patch, 7)
        pretrain(config, tmp_path / "two", quiet=True)
    pretrain(config, tmp_path / "two", resume=True, quiet=True)
    tables = []
    for run in ("one", "two"):
        for model in ("model-best", "model-last"):
            found = find_weights(tmp_path / run / model).subwords()
            assert found is not None and found.table.shape == (1000, 24)
            tables.append(found.table)
    assert all(np.array_equal(tables[0], table) for table in tables)  # the same seed, text, table
    # What starts from this biLM has them too.
    settings = {"paths.weights": str(tmp_path / "one" / "model-last"), "training.max_steps": 1}
    settings |= {"training.warmup_steps": 0, "training.decay_steps": 0}
    pretrain(make_config(text, text, settings), tmp_path / "three", quiet=True)
    found = find_weights(tmp_path / "three" / "model-last").subwords()
    assert found is not None and np.allclose(found.table, tables[0], atol=1e-6)


def test_a_run_without_them(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", prose())
    pretrain(make_config(text, text), tmp_path / "out", quiet=True)
    assert not list((tmp_path / "out").rglob(SUBWORDS))
    # Those of a run that was killed before its first checkpoint.
    (tmp_path / "two").mkdir()
    for name in (SUBWORDS, "vocab.txt"):
        (tmp_path / "two" / name).write_text("begun")
    with pytest.raises(ValueError, match=rf"two' has vocab\.txt, {SUBWORDS} already"):
        pretrain(make_config(text, text), tmp_path / "two", quiet=True)
    pretrain(make_config(text, text), tmp_path / "two", resume=True, quiet=True)
    assert not list((tmp_path / "two").rglob(SUBWORDS))


@pytest.mark.parametrize(("name", "value"), [("rows", 0), ("rows", 2.5), ("dim", 0), ("dim", 1001)])
def test_a_shape_that_cannot_be(tmp_path: Path, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"\[training\] subword_{name} is {value}; "):
        make_config(tmp_path, tmp_path, {f"training.subword_{name}": value})


def test_without_the_package_an_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "floret", None)
    text = write_text(tmp_path / "text.txt", prose())
    config = make_config(text, text, {"training.subword_epochs": 1})
    with pytest.raises(ValueError, match=r"pip install 'spacy-elmo\[subwords\]'"):
        pretrain(config, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
