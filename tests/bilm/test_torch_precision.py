from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm_layer import LSTMLayer
from spacy_elmo.bilm.sentence_packing import Packing
from spacy_elmo.bilm.torch_precision import has_fast_bfloat16, switch_off_tf32

cudnn = torch.backends.cudnn


@pytest.fixture(autouse=True)
def flags() -> Iterator[None]:
    """Each test is the first use of cuDNN, and leaves its switches as it found them."""
    switch_off_tf32.cache_clear()
    with cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=True):
        yield
    switch_off_tf32.cache_clear()


def test_tf32_is_switched_off_and_nothing_else() -> None:
    assert cudnn.allow_tf32
    switch_off_tf32()
    assert not cudnn.allow_tf32  # PyTorch would raise here if two of its switches disagreed
    assert cudnn.benchmark and cudnn.deterministic and cudnn.enabled
    with cudnn.flags(enabled=True):  # nor does this raise
        pass


def test_who_switches_it_on_again_is_heeded() -> None:
    switch_off_tf32()
    cudnn.allow_tf32 = True
    switch_off_tf32()
    assert cudnn.allow_tf32


def test_on_a_cpu_nothing_is_switched() -> None:
    layer = LSTMLayer(BiLMConfig(((1, 4),), 4, 8))
    layer(torch.zeros(2, 3, 4), Packing([3]), torch.zeros(2, 1, 4), torch.zeros(2, 1, 8))
    assert cudnn.allow_tf32


@pytest.mark.skipif(
    not hasattr(torch.backends, "fp32_precision"), reason="this PyTorch has one switch for all"
)
def test_a_switch_above_does_not_count() -> None:
    code = (
        "import torch\n"
        "from spacy_elmo.bilm.torch_precision import switch_off_tf32\n"
        "torch.backends.fp32_precision = 'tf32'\n"
        "switch_off_tf32()\n"
        "cudnn = torch.backends.cudnn\n"
        "assert cudnn.rnn.fp32_precision == cudnn.conv.fp32_precision == 'ieee'\n"
        "assert not cudnn.allow_tf32\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(
    not hasattr(torch.backends, "fp32_precision"), reason="this PyTorch has one switch for all"
)
@pytest.mark.parametrize("switch", ["", "cuda.matmul.", "mkldnn.", "mkldnn.matmul."])
def test_text_is_read_whatever_switch_is_set(switch: str) -> None:
    """PyTorch's function for the older switch raises then."""
    code = (
        "import spacy, torch\n"
        "from spacy_elmo.pretraining.run.machine import matmul_precision\n"
        f"torch.backends.{switch}fp32_precision = 'tf32'\n"
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
        ("AuthenticAMD flags: avx512f avx512_bf16 sse", True),
        ("GenuineIntel flags: avx512f avx512_bf16 sse", False),
        ("GenuineIntel flags: avx512f avx512_bf16 amx_bf16 sse", True),
        ("AuthenticAMD flags: avx512f sse", False),
        ("Features: asimd bf16", True),
    ],
)
def test_CPUs_on_which_bfloat16_is_faster(tmp_path: Path, listed: str, found: bool) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor: 0\nvendor_id: {listed}\n", encoding="utf-8")
    assert has_fast_bfloat16(path) == found
    assert not has_fast_bfloat16(tmp_path / "none")
