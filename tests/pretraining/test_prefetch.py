from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spacy_elmo.pretraining import train as trainer
from spacy_elmo.pretraining.data.prefetch import batches_for, prefetch
from spacy_elmo.pretraining.run.checkpoint import CHECKPOINT
from spacy_elmo.pretraining.train import pretrain

from .helpers import SENTENCES, make_config, prose, same_weights, write_text


def test_items_come_in_their_order() -> None:
    with prefetch(iter(range(100)), 3) as items:
        assert list(items) == list(range(100))


def test_no_more_are_read_than_may_wait() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    with prefetch(numbers(), 3) as items:
        assert next(items) == 0
        deadline = time.monotonic() + 60
        while len(read) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        assert read == [0, 1, 2, 3]  # one taken, three waiting


def test_an_error_comes_where_the_item_would() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("Cannot read the shard")

    with prefetch(numbers()) as items:
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
        with prefetch(endless()) as items:
            next(items)
            assert threading.active_count() == before + 1
            if fails:
                raise KeyError
    except KeyError:
        pass
    assert threading.active_count() == before


def test_the_cpu_reads_on_demand() -> None:
    numbers = iter(range(3))
    with batches_for(numbers, torch.device("cpu")) as items:  # type: ignore[arg-type]
        assert items is numbers


def test_a_run_that_is_resumed_loses_nothing_that_was_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = write_text(tmp_path / "train.txt", prose() + SENTENCES)
    whole, part = (
        make_config(train, train, {"training.max_steps": n, "training.decay_steps": 0})
        for n in (20, 7)
    )
    pretrain(whole, tmp_path / "whole", quiet=True)
    monkeypatch.setattr(trainer, "batches_for", lambda batches, device: prefetch(batches))
    pretrain(part, tmp_path / "parts", quiet=True)
    pretrain(whole, tmp_path / "parts", resume=True, quiet=True)
    assert same_weights(tmp_path / "whole" / CHECKPOINT, tmp_path / "parts" / CHECKPOINT)
