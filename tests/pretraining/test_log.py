from __future__ import annotations

from pathlib import Path

import pytest

from spacy_elmo.pretraining.log import Log, read_log


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    assert read_log(path) == []
    log = Log(path, 0)
    log.write(step=1, loss=0.5)
    assert read_log(path) == [{"step": 1, "loss": 0.5}]  # at once, for who looks on
    for entry in ({"step": 1, "model": "model-last"}, {"step": 2}):
        log.write(**entry)
    Log(path, 1).write(step=2, loss=0.4)
    assert read_log(path) == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.4}]


@pytest.mark.parametrize("line", ["nonsense", '{"step": "one"}'])
def test_another_line_that_is_no_entry_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f'{line}\n{{"step": 2}}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"Line 1 of the log .*log\.jsonl is not an entry"):
        read_log(path)
