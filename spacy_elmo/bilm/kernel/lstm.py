"""An LSTM layer that the kernel computes."""

from __future__ import annotations

import torch

from ..lstm_weights import LSTMWeights
from ..sentence_batches import Packing
from .library import Kernel
from .packing import Product, layer_structs


class KernelLSTM:
    """Computes one layer without gradients. The weights are packed once.

    Args:
        weights: the layer's weights, float32 on a CPU.
        kernel: what computes it.
        int8: the weights of the gates are rounded.
    """

    def __init__(self, weights: LSTMWeights, kernel: Kernel, int8: bool = False):
        ih, hh, bias, hr = weights[:4]
        self.kernel, self.shape = kernel, ih.shape
        self._structs = layer_structs(
            weights,
            ih=Product(ih, bias, kernel.width, is_gates=True, int8=int8),
            hh=Product(hh, None, kernel.width, is_gates=True, int8=int8),
            hr=None if hr is None else Product(hr, None, kernel.width),
        )

    def __call__(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch; see `LSTMLayer.forward`."""
        steps, x = check_batch(self.shape, packing, x, h0, c0), x.contiguous()
        out, h, c = torch.empty_like(x), h0.contiguous().clone(), c0.contiguous().clone()
        self.kernel.call("lstm", self._structs, len(steps), steps, x, h, c, out)
        return out, h, c


def check_batch(
    shape: torch.Size, packing: Packing, x: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor
) -> torch.Tensor:
    """The sizes of the steps, for C, which would read and write beyond tensors of other sizes.

    Args:
        shape: of the weights of the inputs, ``(2, 4D, P)``.
        packing, x, h0, c0: see `LSTMLayer.forward`.

    Raises:
        ValueError: the tensors are not those of the batch, or not float32.
    """
    sizes, n, (P, D) = packing.batch_sizes, len(packing.sorted_indices), (shape[2], shape[1] // 4)
    if sizes[:1] != [n] or sizes[-1] < 1 or sizes != sorted(sizes, reverse=True):
        raise ValueError(f"The steps of {n} sentences have the sizes {sizes[:9]}, not falling.")
    if x.shape != (2, sum(sizes), P) or h0.shape != (2, n, P) or c0.shape != (2, n, D):
        raise ValueError(f"The inputs have the shape {tuple(x.shape)}, not that of the batch.")
    if any(tensor.dtype != torch.float32 for tensor in (x, h0, c0)):
        raise ValueError("The kernel reads float32.")
    return torch.tensor(sizes, dtype=torch.int32)
