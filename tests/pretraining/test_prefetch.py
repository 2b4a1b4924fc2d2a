from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spacy_elmo.pretraining.corpus import TrainingCorpus, read_ahead
from spacy_elmo.pretraining.state import CHECKPOINT
from spacy_elmo.pretraining.train import pretrain

from .helpers import SENTENCES, make_config, prose, same_weights, write_text


def test_an_error_comes_where_the_item_would() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("Cannot read the shard")

    with closing(read_ahead(numbers())) as items:
        assert next(items) == 1
        with pytest.raises(ValueError, match="Cannot read the shard"):
            next(items)


@pytest.mark.parametrize("fails", [False, True])
def test_the_thread_ends_with_the_context(fails: bool) -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 0

    before = threading.active_count()
    try:
        with closing(read_ahead(endless())) as items:
            next(items)
            assert threading.active_count() == before + 1
            if fails:
                raise KeyError
    except KeyError:
        pass
    assert threading.active_count() == before


def test_a_run_that_is_resumed_loses_nothing_that_was_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = write_text(tmp_path / "train.txt", prose() + SENTENCES)
    whole, part = (
        make_config(train, train, {"training.max_steps": n, "training.decay_steps": 0})
        for n in (20, 7)
    )
    pretrain(whole, tmp_path / "whole", quiet=True)
    batches = TrainingCorpus.batches
    monkeypatch.setattr(TrainingCorpus, "batches", lambda *given: read_ahead(batches(*given)))
    pretrain(part, tmp_path / "parts", quiet=True)
    pretrain(whole, tmp_path / "parts", resume=True, quiet=True)
    assert same_weights(tmp_path / "whole" / CHECKPOINT, tmp_path / "parts" / CHECKPOINT)
