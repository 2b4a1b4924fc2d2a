"""The scripts of benchmarks/, imported as they import each other, and small data for them."""

from __future__ import annotations

import lzma
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from ..pretraining.helpers import PROSE
from ..threads import one_thread  # noqa: F401

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a script in this process and returns what it prints."""

    def run(script: str, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        import_module(script).main()
        return capsys.readouterr().out

    return run


def pack(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode()))


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder of what the scripts read, see benchmarks/README.md."""
    data = tmp_path_factory.mktemp("data")
    for name in ("enwiki", "masc", "kowiki", "registers/chat"):
        for split in ("train", "valid"):
            pack(data / "lm" / name / f"{split}.txt.xz", PROSE)
    words = ["<S>", "</S>", "<UNK>", *sorted(set(PROSE.split())), "nowhere-else"]
    (data / "eval_vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return data
