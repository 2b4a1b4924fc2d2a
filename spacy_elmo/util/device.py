"""Finds a device by its name."""

from __future__ import annotations

import torch


def find_device(name: str) -> torch.device:
    """Find a device by PyTorch's name; ``"cuda"`` is the first GPU.

    Raises:
        ValueError: this machine has no such device.
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"There is no device {name!r}; give 'cpu', or a GPU: 'cuda:0'.") from error
    if device.type != "cuda":
        return device
    index = device.index or 0
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= n_devices:
        raise ValueError(
            f"There is no GPU {index}: PyTorch {torch.__version__} finds {n_devices} CUDA devices "
            f"on this machine. Leave out --gpu-id to use the CPU."
        )
    return torch.device("cuda", index)  # with its index, which `set_device` needs
