"""Whether two biLMs have the same weights, and copies that share them in memory."""

from __future__ import annotations

from copy import deepcopy
from hashlib import blake2b
from typing import Any

from torch.nn import Parameter

from .model import BiLM, versions

LAZY = ("warm_h", "warm_c")


def fingerprint(model: BiLM) -> str:
    """Hash a biLM's parameters and buffers, as its weights file stores them, to 32 hex digits.

    Floating-point values count as float32, so that neither the device, nor how vectors are
    computed, nor half precision that stores the same values changes it. A warm state is left out:
    one that is computed at its first use would. The biLM keeps it until its weights change.
    """
    version = versions(model)
    if model.hash is None or model.hash[0] != version:
        model.hash = version, _hash(model)
    return model.hash[1]


def _hash(model: BiLM) -> str:
    found = blake2b(digest_size=16)
    for name, stored in sorted(model.state_dict().items()):
        if name not in LAZY:
            tensor = stored.detach().cpu().contiguous()
            tensor = tensor.float() if tensor.is_floating_point() else tensor
            found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            found.update(tensor.view(-1).numpy().data)
    return found.hexdigest()


def share_weights(model: BiLM) -> BiLM:
    """A copy with the same weights in memory, which can be cast and moved by itself."""
    memo: dict[int, Any] = {id(model.word_cache): model.word_cache}
    memo |= {id(p): Parameter(p.detach(), requires_grad=False) for p in model.parameters()}
    memo |= {id(buffer): buffer.detach() for buffer in model.buffers()}
    return deepcopy(model, memo)
