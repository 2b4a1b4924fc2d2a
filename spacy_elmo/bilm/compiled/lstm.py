"""The LSTM layer as a compiled CPU kernel, an option that needs a C++ compiler.

PyTorch's own extension mechanism builds it at its first use, for this CPU and this PyTorch, and
keeps it beside PyTorch's other caches, or in ``TORCH_EXTENSIONS_DIR``. Where it cannot be built or
run, `load_kernel` warns once and returns None, and the layer computes with PyTorch's operators.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from shutil import which
from typing import Any

import torch

from ...util.files import locked
from ..lstm_autograd import AutogradLSTM, Tensors
from ..lstm_weights import LSTMWeights
from ..sentence_batches import Packing
from ..torch_precision import cpu_features

SOURCE = Path(__file__).parent / "lstm.cpp"
BLOCK = 32  # the kernel computes this many cells at a time
FLAGS = [
    "-O3",
    "-march=native",
    "-mprefer-vector-width=512",
    "-ffast-math",
    "-fno-finite-math-only",  # infinite and NaN values are told from others
    "-fopenmp",
]


@lru_cache
def load_kernel(bfloat16: bool) -> Any:
    """The compiled kernel; built if it has not been, which takes a minute.

    Args:
        bfloat16: whether its matrix products are to take bfloat16 operands.

    Returns:
        The extension module, or None where it cannot be built or run.
    """
    from torch.utils.cpp_extension import get_default_build_root, load

    # A cache in a home directory may be shared by machines with different CPUs, and by virtual
    # environments, whose paths are part of the compiler's command.
    paths = str(SOURCE), torch.__file__
    facts = (SOURCE.read_text("utf-8"), FLAGS, torch.__version__, sorted(cpu_features()), *paths)
    name = f"spacy_elmo_lstm_{blake2b(repr(facts).encode(), digest_size=6).hexdigest()}"
    folder = Path(os.environ.get("TORCH_EXTENSIONS_DIR") or get_default_build_root(), name)
    try:
        if not which("ninja"):  # that of the extra, beside a Python that is not activated
            from ninja import BIN_DIR

            os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), BIN_DIR])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "process.lock").touch()
        with locked(folder / "process.lock") as is_locked:
            if is_locked:  # nobody builds: PyTorch's own lock is of a process that was killed
                (folder / "lock").unlink(missing_ok=True)
            kernel = load(name, [str(SOURCE)], extra_cflags=FLAGS, build_directory=str(folder))
        if not kernel.supports(bfloat16):
            raise RuntimeError("its matrix products are wrong on this CPU")
    except Exception as error:  # of compilers, linkers and operating systems
        lines = str(error).strip().splitlines() or [type(error).__name__]
        warnings.warn(
            f"The compiled LSTM kernel is not available ({lines[0]}): computing with PyTorch's "
            f"operators. It needs pip install 'spacy-elmo[compile]', a C++ compiler, and AVX-512 "
            f"with bfloat16.",
            UserWarning,
            stacklevel=3,
        )
        return None
    return kernel


class CompiledLSTM(AutogradLSTM):
    """One layer by the compiled kernel.

    The matrix products of bfloat16 operands accumulate in float32, and so are all other values.

    Args:
        weights: of the layer.
        kernel: see `load_kernel`.
        bfloat16: make its products take bfloat16 operands.
    """

    def __init__(self, weights: LSTMWeights, kernel: Any, bfloat16: bool):
        super().__init__(weights)
        self.kernel = kernel
        self.clips = weights.cell_clip or 0.0, weights.proj_clip or 0.0  # 0: none
        self.packed = kernel.pack(weights.ih, weights.hh, weights.hr, bfloat16, False)

    def forward(self, packing: Packing, given: Tensors, for_backward: bool) -> Tensors:
        weights, sizes = (self.packed, self.weights.bias), packing.batch_sizes
        return self.kernel.forward(*given, *weights, sizes, *self.clips, for_backward)

    def backward(
        self, packing: Packing, given: Tensors, saved: Tensors, gradients: Tensors
    ) -> Sequence[torch.Tensor | None]:
        ih, hh, _, hr = self.weights[:4]
        tensors = *gradients, given[2], ih, hh, hr, *saved
        return self.kernel.backward(*tensors, packing.batch_sizes, *self.clips)
