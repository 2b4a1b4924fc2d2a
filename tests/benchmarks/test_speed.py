"""The scripts that measure the speed of reading."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from ..pipeline.helpers import write_weights
from .conftest import Run


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A text and weights."""
    text = tmp_path / "text.txt"
    text.write_text("A bank is here. So it is!\n\nNo bank.\n" * 3, encoding="utf-8")
    return str(text), str(write_weights(tmp_path / "weights"))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "script, options, found",
    [
        ("inference", ["--words", "20", "--runs", "1"], "| warm |"),
        ("products", ["--sentences", "5", "--runs", "1"], "one large product"),
        ("products", ["--sentences", "5", "--runs", "1", "--train"], "training"),
    ],
)
def test_scripts(
    script: str,
    options: list[str],
    found: str,
    precision: str,
    files: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, weights = files
    arguments = [text, "--weights", weights, "--precision", precision, "--threads", "1", *options]
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    module = import_module(script)
    monkeypatch.setattr(module.torch, "set_float32_matmul_precision", lambda name: None)
    module.main()
    assert found in capsys.readouterr().out


def test_products_are_those_of_the_layer(files: tuple[str, str]) -> None:
    """Operations by the definition: for each token those of inputs, state and projection."""
    products = import_module("products")
    config = products.load_bilm(files[1]).config
    lengths = [4, 7, 2]
    p, d = config.projection_dim, config.dim
    each = p * 4 * d + p * 4 * d + d * p
    for train, times in ((False, 1), (True, 3)):  # backward, one by the input, one by the weight
        found = products.shapes(config, lengths, train)
        assert sum(m * k * n for m, k, n in found) == times * sum(lengths) * each


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
def test_cost(run: Run, data: Path, files: tuple[str, str]) -> None:
    few = ("--steps", 2, "--words", 20, "--runs", 1)
    *packages, plain, elmo = run("cost", files[0], "--data", data, *few).splitlines()
    assert [line.partition(":")[0] for line in packages] == ["torch", "spacy"]
    assert plain.startswith("plain; ") and elmo.startswith("elmo; ")
    assert float(elmo.split()[1]) > 8 + float(plain.split()[1])  # MB: the weights
