from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spacy_elmo.bilm import torch_precision
from spacy_elmo.bilm.torch_precision import cpu_features, has_fast_bfloat16, without_tf32

cudnn = torch.backends.cudnn


GPU = torch.device("cuda")


def is_on() -> bool:
    """Whether cuDNN's LSTM computes in TensorFloat-32."""
    return cudnn.rnn.fp32_precision == "tf32"


@pytest.fixture(autouse=True)
def flags() -> Iterator[None]:
    with cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=True):
        yield


@pytest.mark.parametrize("before", [True, False])
def test_tf32_is_off_inside_and_put_back(before: bool) -> None:
    cudnn.allow_tf32 = before
    with pytest.raises(ZeroDivisionError), without_tf32(GPU):
        with without_tf32(GPU):
            assert not is_on()
        assert not is_on()
        assert cudnn.benchmark and cudnn.deterministic and cudnn.enabled
        _ = 1 / 0
    assert cudnn.allow_tf32 == before  # PyTorch would raise here if two of its switches disagreed


def test_it_is_off_until_the_last_thread_has_ended() -> None:
    first, second = without_tf32(GPU), without_tf32(GPU)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not is_on()
    second.__exit__(None, None, None)
    assert is_on()


@pytest.mark.parametrize("switch", ["", "mkldnn."])
def test_text_is_read_whatever_switch_is_set(switch: str) -> None:
    """PyTorch's function for the older switch raises then."""
    code = (
        "import spacy, torch\n"
        "from spacy_elmo.pretraining.device import matmul_precision\n"
        "from spacy_elmo.bilm.torch_precision import without_tf32\n"
        f"torch.backends.{switch}fp32_precision = 'tf32'\n"
        "before = torch.backends.cudnn.rnn.fp32_precision\n"
        "with without_tf32(torch.device('cuda')):\n"
        "    assert torch.backends.cudnn.rnn.fp32_precision == 'ieee'\n"
        "assert torch.backends.cudnn.rnn.fp32_precision == before\n"
        "nlp = spacy.blank('en')\n"
        "nlp.add_pipe('elmo')\n"
        "assert nlp('a bank').tensor.any()\n"
        "with matmul_precision('medium'):\n"
        "    assert torch.get_float32_matmul_precision() == 'medium'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ("AuthenticAMD\nflags: avx512f avx512_bf16 sse", True),
        ("GenuineIntel\nflags: avx512f avx512_bf16 sse", False),
        ("GenuineIntel\nflags: avx512f avx512_bf16 amx_bf16 sse", True),
        ("\nFeatures: asimd bf16", True),
    ],
)
def test_CPUs_on_which_bfloat16_is_faster(
    tmp_path: Path, listed: str, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor: 0\nvendor_id: {listed}\n", encoding="utf-8")
    features = cpu_features(tmp_path / "cpuinfo")
    monkeypatch.setattr(torch_precision, "cpu_features", lambda: features)
    assert has_fast_bfloat16() == found
    assert cpu_features(tmp_path / "none").isdisjoint(features)
