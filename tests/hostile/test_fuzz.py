from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spacy_elmo.weights.layout import Card

from ..pipeline.helpers import make_nlp, write_weights

ROOT = Path(__file__).parents[2]


def test_damaged_files() -> None:
    """A sample of the benchmark, each input in a child of limited memory and time."""
    pytest.importorskip("h5py")
    command = [
        sys.executable,
        ROOT / "benchmarks" / "reliability" / "hostile.py",
        "--inputs",
        "240",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout


@pytest.fixture
def attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What the benchmark finds when it reads a directory with a function; nothing is damaged."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks" / "reliability")
    monkeypatch.chdir(tmp_path)  # it changes the working directory
    import hostile

    monkeypatch.setattr(hostile, "mutate_data", lambda file, data, rng: data)
    return lambda folder, read: hostile.attack(
        hostile.Target(folder, read), tmp_path / "room", seed=0
    )


def test_faults_that_it_sees(tmp_path: Path, attack: Callable[..., str]) -> None:
    folder = tmp_path / "sound"
    folder.mkdir()
    (folder / "a.txt").write_text("A text.")

    def refuse(path: Path) -> torch.Tensor:
        raise ValueError(f"Cannot read {path}")

    def run_out_of_memory(path: Path) -> torch.Tensor:
        try:
            raise MemoryError
        except MemoryError as error:
            raise ValueError(f"Cannot read {path}") from error

    def overwrite(path: Path) -> torch.Tensor:
        (path / "../../outside").write_text("mine")
        return torch.zeros(1)

    def change(path: Path) -> torch.Tensor:
        (path / "a.txt").write_text("Another")
        return torch.zeros(1)

    assert attack(folder, refuse) == "refused"
    assert attack(folder, run_out_of_memory).startswith("more memory than 700 MB for a.txt")
    assert attack(folder, overwrite).startswith("a.txt: wrote ")
    assert attack(folder, change).startswith("a.txt: wrote ")
    assert (
        attack(folder, lambda path: torch.tensor(torch.nan)) == "a.txt: values that are not finite"
    )
    assert attack(folder, lambda path: torch.zeros(1)) == "loaded"


def test_names_that_become_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: Callable[..., str]
) -> None:
    """A card's documents with other names are refused; if they were not, they would not be
    written."""
    from hostile_targets import read_component
    from mutations import OUTSIDE

    nlp = make_nlp(write_weights(tmp_path / "weights"))
    nlp("This loads the weights.")
    nlp.get_pipe("elmo").bilm.card.documents[OUTSIDE] = "A stranger's text"
    nlp.get_pipe("elmo").to_disk("component")
    assert attack(tmp_path / "component", lambda path: read_component(nlp, path)) == "refused"
    monkeypatch.setattr(Card, "__post_init__", lambda self: None)
    found = attack(tmp_path / "component", lambda path: read_component(nlp, path))
    assert found == "loaded"
