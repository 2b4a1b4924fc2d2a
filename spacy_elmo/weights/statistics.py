"""Statistics of a biLM's layers and of words, for vectors that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save as save_arrays
from safetensors.torch import load as load_tensors

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.sentence_batches import IndexedSentences
from ..util.files import naming_errors, read_whole
from ..util.threads import threads_for
from .layout import STATISTICS
from .tensors import check_tensors

MAX_BYTES = 2**28  # the size of the file
MAX_TYPES = 20_000  # the whitening is fitted to so many distinct words, the most frequent ones
MAX_WORDS = 200_000  # all layers are computed for so many words
MIN_FREQUENCY = 1e-5  # rarer words are weighted like unseen ones
MIN_VARIANCE = 1e-4  # times the largest variance; the whitening leaves out directions with less


@dataclass(frozen=True)
class Statistics:
    """The statistics of a biLM, stored as ``statistics.safetensors``.

    Attributes:
        frequencies: the relative frequencies of V frequent words.
        word_mean: ``(P,)``, the mean token vector of distinct words.
        whitening: ``(P, P)``, a matrix that turns the covariance of these vectors into the
            identity.
        mean: ``(L + 1, 2P)``, the mean of each layer over running text.
        std: ``(L + 1, 2P)``, the standard deviation of each layer over running text.
    """

    frequencies: dict[str, float]
    word_mean: np.ndarray
    whitening: np.ndarray
    mean: np.ndarray
    std: np.ndarray

    def whiten(self, vectors: np.ndarray) -> np.ndarray:
        """Whiten token vectors ``(n_words, P)``, by PyTorch, whose threads can be limited."""
        words, whitening = map(torch.from_numpy, (vectors - self.word_mean, self.whitening))
        with threads_for(words.numel() * len(whitening)), torch.autocast("cpu", enabled=False):
            return (words @ whitening).numpy()

    def to_bytes(self) -> bytes:
        """Serialize in the safetensors format. The words are joined by line feeds, in UTF-8."""
        text = np.frombuffer("\n".join(self.frequencies).encode("utf-8"), dtype=np.uint8)
        arrays = {"words": text, "whitening": self.whitening.astype("f2")}
        arrays["frequencies"] = np.array([*self.frequencies.values()], dtype="f4")
        arrays |= {name: getattr(self, name) for name in ("word_mean", "mean", "std")}
        # `save_arrays` ignores strides.
        return save_arrays({n: np.ascontiguousarray(a) for n, a in arrays.items()})

    @classmethod
    def read(cls, folder: Path, config: BiLMConfig) -> Statistics | None:
        """Read the statistics in a directory, None if there are none.

        Raises:
            ValueError: see `from_bytes`; or the file is far too large.
        """
        file = folder / STATISTICS
        if not file.is_file():
            return None
        with naming_errors("the statistics", file), file.open("rb") as opened:
            return cls.from_bytes(read_whole(opened, MAX_BYTES), config)

    @classmethod
    def from_bytes(cls, data: bytes, config: BiLMConfig) -> Statistics:
        """Read statistics that `to_bytes` has serialized.

        Args:
            data: the bytes.
            config: the biLM that they should belong to.

        Raises:
            ValueError: an array is missing, or has a wrong shape or wrong values.
        """
        size, layers = config.projection_dim, (config.n_layers + 1, config.width)
        tensors = load_tensors(data)
        text = tensors.pop("words").numpy().tobytes().decode("utf-8")
        words = text.split("\n") if text else []
        shapes = {"frequencies": (len(words),), "word_mean": (size,), "whitening": (size, size)}
        shapes |= {"mean": layers, "std": layers}
        expected = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
        checked = check_tensors(expected, "The file of statistics", tensors)
        arrays = {name: tensor.numpy() for name, tensor in checked.items()}
        shares = arrays.pop("frequencies")
        if (arrays["std"] <= 0).any() or (shares < 0).any() or shares.sum() > 1.001:
            raise ValueError("deviations or frequencies are none: compute the statistics again")
        return cls(dict(zip(words, shares.tolist(), strict=True)), **arrays)


@threads_for(0)
def compute_statistics(
    model: BiLM, text: IndexedSentences, max_words: int = 0
) -> Statistics | None:
    """Compute the statistics of a biLM on a text, None if it has fewer than two distinct words.

    All words are counted. Layers are computed for a part of the text, in sentences that are spread
    evenly over it.

    Args:
        model: the biLM.
        text: some ten thousand words in its language, best from its training text.
        max_words: the number of words in the part; 0 for `MAX_WORDS`.
    """
    counts = np.bincount(text.tokens, minlength=len(text.types))
    counts[:2] = 0  # the boundaries
    if np.count_nonzero(counts) < 2:
        return None
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    frequent = [i for i in order if counts[i] > 1 and counts[i] >= MIN_FREQUENCY * counts.sum()]
    shares = (counts[frequent] / counts.sum()).astype("float32").tolist()
    frequencies = dict(zip([text.types[i] for i in frequent], shares, strict=True))
    # Without autocast: they are saved.
    with model.evaluating(), torch.autocast(model.device.type, enabled=False):
        word_mean, whitening = _whitening(model, [text.types[i] for i in order[:MAX_TYPES]])
        mean, std = _moments(model, text, max_words or MAX_WORDS)
    return Statistics(frequencies, word_mean, whitening, mean, std)


def _whitening(model: BiLM, types: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the whitening matrix (ZCA) of distinct words' token vectors."""
    parts = [model.encode(types[i : i + 1000]) for i in range(0, len(types), 1000)]
    vectors = torch.cat(parts).double().cpu()
    mean = vectors.mean(dim=0)
    values, directions = torch.linalg.eigh(torch.atleast_2d((vectors - mean).T.cov()))
    used = values > max(MIN_VARIANCE * float(values.max()), 1e-12)
    directions, scales = directions[:, used], values[used].rsqrt()
    return mean.float().numpy(), ((directions * scales) @ directions.T).float().numpy()


def _moments(model: BiLM, text: IndexedSentences, max_words: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation of each layer, ``(L + 1, 2P)``."""
    step = max(1, -(-len(text.tokens) // max_words))
    n_words, first, second = 0, torch.zeros(()), torch.zeros(())
    chosen = np.arange(0, len(text.lengths), step)
    for start in range(0, len(chosen), 256):
        sentences = text.words(chosen[start : start + 256])
        layers = torch.cat(model.read(sentences)[0], dim=1).double().cpu()
        n_words += layers.shape[1]
        first, second = first + layers.sum(dim=1), second + layers.square().sum(dim=1)
    mean = first / n_words
    variance = second / n_words - mean.square()
    return mean.float().numpy(), variance.clamp_min(1e-12).sqrt().float().numpy()
