"""A hash of a biLM's weights."""

from __future__ import annotations

from hashlib import blake2b

from .model import BiLM

LAZY = ("warm_h", "warm_c")


def fingerprint(model: BiLM) -> str:
    """Hash a biLM's parameters and buffers, as its weights file stores them, to 32 hex digits.

    Floating-point values count as float32. So the hash does not depend on the device, on how
    vectors are computed, or on half precision that stores the same values. A warm state is left
    out, because it may be computed at its first use. The biLM keeps the hash until its weights
    change.
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
