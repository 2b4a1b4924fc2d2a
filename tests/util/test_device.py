from __future__ import annotations

import pytest
import torch

from spacy_elmo.util.device import find_device


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match="no device 'gpu'; give 'cpu'"):
        find_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"There is no GPU 0: .* 0 CUDA devices.*--gpu-id"):
        find_device("cuda:0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("cuda:1") == torch.device("cuda:1")
    # With an index: `torch.cuda.set_device` takes no other.
    assert find_device("cuda") == torch.device("cuda:0")
    with pytest.raises(ValueError, match=r"There is no GPU 2: .* finds 2 CUDA devices"):
        find_device("cuda:2")
