"""A hash of a biLM's weights."""

from __future__ import annotations

from hashlib import blake2b

from .model import BiLM

LAZY = ("warm_h", "warm_c")


def fingerprint(model: BiLM) -> str:
    """Hash a biLM's parameters and buffers, as its weights file stores them, to 32 hex digits.

    Floating-point values count as float32, so that neither the device, nor how vectors are
    computed, nor half precision that stores the same values changes it. A warm state is left out:
    one that is computed at its first use would. The biLM keeps it until its weights change.
    """
    return model.derived("fingerprint", lambda: _hash(model))


def _hash(model: BiLM) -> str:
    found = blake2b(digest_size=16)
    for name, stored in sorted(model.state_dict().items()):
        if name not in LAZY:
            tensor = stored.detach().cpu().contiguous()
            tensor = tensor.float() if tensor.is_floating_point() else tensor
            found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            found.update(tensor.view(-1).numpy().data)
    return found.hexdigest()
