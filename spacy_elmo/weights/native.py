"""The format of a biLM: a directory with ``config.json`` and ``weights.safetensors``.

Optional are ``vocab.txt`` and ``head.safetensors`` (the language model's softmax),
``statistics.safetensors`` (for similarity), ``meta.json`` (name, language, licence, sources) and
the card ``README.md`` with ``LICENSE``.
No file here is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import read_json, reading, write_json
from .layout import CONFIG, FILES, HEAD, VOCAB, WEIGHTS, Card, read_words
from .statistics import Statistics

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
TOO_LARGE = 1e18  # its square still is a float32
Tensors = Mapping[str, torch.Tensor]
Shapes = Mapping[str, tuple[int, ...]]


class Weights:
    """A directory in this format; no tensor is read before `load`, `head` or `statistics`.

    Args:
        path: the directory.

    Attributes:
        where: the same, for messages.
    """

    def __init__(self, path: Path):
        self.path, self.where = path, str(path)

    def config(self) -> BiLMConfig:
        """The shape of the biLM.

        Raises:
            ValueError: it is missing or wrong.
        """
        data = read_json(self.path / CONFIG)
        with reading("the config", self.path / CONFIG):
            return BiLMConfig.from_dict(data)

    def load(self) -> BiLM:
        """The biLM, in float32, in evaluation mode, on the CPU.

        Raises:
            ValueError: something is missing, damaged, or does not fit the config.
        """
        self.check()
        return build(self.config(), self._tensors(WEIGHTS), str(self.path / WEIGHTS))

    def check(self) -> None:
        """Compare the names and shapes of the tensors with the config; no tensor is read.

        Raises:
            ValueError: something is missing, damaged, or does not fit the config.
        """
        config, shapes = self.config(), self._shapes(WEIGHTS)
        check_shapes(_empty(config, shapes).state_dict(), shapes, str(self.path / WEIGHTS))

    def has_warm_state(self) -> bool:
        """Tell whether a warm state is stored with them."""
        return "warm_h" in self._shapes(WEIGHTS)

    def has_head(self) -> bool:
        """Tell whether there are a language model's head and its vocabulary."""
        return (self.path / HEAD).is_file() and (self.path / VOCAB).is_file()

    def words(self) -> list[str]:
        """The V words of the head.

        Raises:
            ValueError: there is no head, or its vocabulary is damaged.
        """
        if not self.has_head():
            raise ValueError(
                f"The biLM in '{self.where}' comes without a language model's head ({HEAD} and "
                f"{VOCAB}), so it cannot predict words. Models from `python -m spacy elmo "
                f"pretrain` have one."
            )
        return read_words(self.path / VOCAB)

    def head(self) -> tuple[list[str], Tensors]:
        """The V words of the head, and its tensors, ``weight`` ``(V, P)`` and ``bias`` ``(V,)``.

        Raises:
            ValueError: there is none, it is damaged, or it does not fit the biLM or the words.
        """
        words = self.words()
        source = f"The head of {self.where} ({len(words):,} words in '{self.path / VOCAB}')"
        with torch.device("meta"):
            weight = torch.empty(len(words), self.config().projection_dim)
            expected = {"weight": weight, "bias": torch.empty(len(words))}
        check_shapes(expected, self._shapes(HEAD), source)
        tensors = self._tensors(HEAD)
        check_tensors(expected, tensors, source)
        return words, tensors

    def statistics(self) -> Statistics | None:
        """Statistics of the layers and words; None if there are none.

        Raises:
            ValueError: they are damaged, or belong to another biLM.
        """
        return Statistics.read(self.path, self.config())

    def card(self) -> Card:
        """Name, language, licence and so on; empty where there is no card.

        Raises:
            ValueError: it is damaged.
        """
        return Card.read(self.path)

    def files(self) -> list[Path]:
        """The files that they are read from, card and head among them."""
        return [file for file in (self.path / name for name in FILES) if file.is_file()]

    def _shapes(self, name: str) -> Shapes:
        with reading("the weights", self.path / name):
            with safe_open(self.path / name, "pt") as file:
                return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118

    def _tensors(self, name: str) -> Tensors:
        """The tensors of a file, copied from its memory map: it may be overwritten later. One map
        for each, so that what was copied does not stay in memory."""
        tensors = {}
        with reading("the weights", self.path / name):
            for each in self._shapes(name):
                with safe_open(self.path / name, "pt") as file:
                    tensors[each] = file.get_tensor(each).clone()
        return tensors


def build(config: BiLMConfig, tensors: Tensors, source: str) -> BiLM:
    """A biLM of a config with given weights, in float32, in evaluation mode.

    Args:
        config: its shape.
        tensors: by parameter name, of any floating-point type.
        source: where they come from, for errors.

    Raises:
        ValueError: a tensor is missing, unknown, or of the wrong shape.
    """
    model = _empty(config, {name: tuple(tensor.shape) for name, tensor in tensors.items()})
    check_tensors(dict(model.state_dict()), tensors, source)
    weights = {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}
    with reading("the weights", source):
        model.load_state_dict(weights, assign=True)
    return model.eval()


def _empty(config: BiLMConfig, found: Shapes) -> BiLM:
    """A biLM without values, with the tensors that the config does not describe: a warm state if
    there is one, and the dictionaries, whose length in bytes it does not know."""
    with torch.device("meta"):
        model = BiLM(config)
        if "warm_h" in found:
            model.set_warm_state(model.zero_state())
        for name, buffer in list(model.named_buffers()):
            if buffer.dtype == torch.uint8:
                module, _, name_there = name.rpartition(".")
                n_bytes = torch.empty(found.get(name, (0,)), dtype=torch.uint8)
                setattr(model.get_submodule(module), name_there, n_bytes)
    return model


def check_shapes(expected: Tensors, found: Shapes, source: str) -> None:
    """Raise a ValueError unless the tensors have the expected names and shapes."""
    missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or unknown:
        raise ValueError(
            f"{source} does not fit its config: missing tensors {missing[:5]}, unknown "
            f"{unknown[:5]}."
        )
    for name, tensor in expected.items():
        if found[name] != tuple(tensor.shape):
            raise ValueError(
                f"{source}: tensor '{name}' has the shape {found[name]}, but the config requires "
                f"{tuple(tensor.shape)}."
            )


def check_tensors(expected: Tensors, found: Tensors, source: str) -> None:
    """Raise a ValueError unless the tensors have the expected names and shapes, and floating-point
    values with which nothing overflows, or integers of the expected type."""
    check_shapes(expected, {name: tuple(tensor.shape) for name, tensor in found.items()}, source)
    for name, tensor in found.items():
        dtype = expected[name].dtype
        if tensor.dtype not in (FLOATS if dtype.is_floating_point else (dtype,)):
            kind = "float32, float16, bfloat16 or float64" if dtype.is_floating_point else dtype
            raise ValueError(
                f"{source}: tensor '{name}' is of the type {tensor.dtype}, expected {kind}."
            )
        # The extremes are not finite if any value is not, and finding them takes no memory.
        if tensor.numel() and not all(abs(each.item()) < TOO_LARGE for each in tensor.aminmax()):
            raise ValueError(
                f"{source}: tensor '{name}' has values that are not finite, or far too large."
            )


def compact(tensors: Tensors, half: bool = False) -> dict[str, torch.Tensor]:
    """The tensors, in half precision where that is exact.

    Args:
        tensors: by name; integers stay the same.
        half: round all others to half precision.
    """
    found: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        rounded = tensor.half() if tensor.is_floating_point() else tensor
        is_wanted = half or torch.equal(rounded.to(tensor.dtype), tensor)
        found[name] = (rounded if is_wanted else tensor).contiguous()
    return found


def write_tensors(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file with the permissions any new file gets.

    Raises:
        OSError: it cannot be written, as where the disk is full.
    """
    # `save_file` makes it readable for its owner alone, and hides the system's error.
    path.write_bytes(save_tensors({n: t.contiguous() for n, t in tensors.items()}, metadata))


def save_bilm(model: BiLM, path: Path, card: Card | None = None, half: bool = False) -> None:
    """Write a biLM's config, weights and card into a directory that exists.

    Args:
        model: the biLM, with its warm state if it has one.
        path: where to; use `atomic_directory` to have it appear whole or not at all.
        card: written beside the weights.
        half: round the weights to half precision first.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    write_json(path / CONFIG, model.config.to_dict())
    write_tensors(compact(tensors, half), path / WEIGHTS)
    if card is not None:
        card.save(path)
