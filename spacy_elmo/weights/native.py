"""biLMs on disk: a directory with ``config.json`` and ``weights.safetensors``.

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
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.static_vectors import TOO_LARGE
from ..util.files import read_json, reading, write_json
from .layout import CONFIG, HEAD, VOCAB, WEIGHTS, Card, Weights

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
# Characters with every byte of UTF-8: ASCII, all that continue one, and all that begin one.
CHARACTERS = [*range(0xC0), *range(0xC0, 0x800, 0x40), 0x800, *range(0x1000, 0x10000, 0x1000)]
CHARACTERS += range(0x10000, 0x110000, 0x10000)


class NativeWeights(Weights):
    """A directory with ``config.json`` and ``weights.safetensors``.

    Args:
        path: the directory.
    """

    layout = "native"

    def __init__(self, path: Path):
        self.path = self.folder = path
        self.where = str(path)
        self.vocab = self.beside(VOCAB)

    def config(self) -> BiLMConfig:
        data = read_json(self.path / CONFIG)
        with reading("the config", self.path / CONFIG):
            config = BiLMConfig.from_dict(data)
            config.check_complete()
        return config

    def load(self) -> BiLM:
        return build(self.config(), self._tensors(WEIGHTS), str(self.path / WEIGHTS))

    def check(self) -> None:
        shapes, config = self._shapes(), self.config()
        check_shapes(_empty(config, shapes).state_dict(), shapes, str(self.path / WEIGHTS))

    def has_softmax(self) -> bool:
        return self.beside(HEAD) is not None

    def softmax(self) -> dict[str, torch.Tensor]:
        return self._tensors(HEAD)

    def has_warm_state(self) -> bool:
        return "warm_h" in self._shapes()

    def _tensors(self, name: str) -> dict[str, torch.Tensor]:
        """The tensors of a file.

        Each is copied from a memory map of its own: the file may be overwritten later, and at most
        one tensor is in memory twice.
        """
        path = self.path / name

        def copy(name: str) -> torch.Tensor:
            with safe_open(path, "pt") as file:
                return file.get_tensor(name).clone()

        with reading("the weights", path):
            with safe_open(path, "pt") as file:
                names = list(file.keys())
            return {name: copy(name) for name in names}

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        with reading("the weights", self.path / WEIGHTS):
            with safe_open(self.path / WEIGHTS, "pt") as file:
                return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def build(config: BiLMConfig, tensors: Mapping[str, torch.Tensor], source: str) -> BiLM:
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
    model.eval()
    check_output(model, source)
    return model


def check_output(model: BiLM, source: str) -> None:
    """Raise a ValueError if finite weights are so large that what they compute is not finite, or
    not when it is multiplied.

    All bytes are read, from the stored warm state if there is one.
    """
    state = model.zero_state()
    if model.warm_h is not None and model.warm_c is not None:
        state = model.warm_h, model.warm_c
    with torch.inference_mode(), torch.autocast(model.device.type, enabled=False):
        found, _ = model.read(_probe(model.config.max_characters_per_token), state)
    model.word_cache.clear()
    if not all(bool(part.abs().max() < TOO_LARGE) for part in (*found, *state)):  # false for NaN
        raise ValueError(
            f"{source}: what these weights compute is not finite, or far too large: some of their "
            f"values are. The file may be damaged."
        )


def _probe(max_characters: int) -> list[list[str]]:
    """Short sentences of words with all bytes, none of which is cut off."""
    n = max(1, (max_characters - 2) // 4)
    words = ["".join(map(chr, CHARACTERS[i : i + n])) for i in range(0, len(CHARACTERS), n)]
    return [words[i : i + 4] for i in range(0, len(words), 4)]


def _empty(config: BiLMConfig, found: Mapping[str, tuple[int, ...]]) -> BiLM:
    """A biLM without values, with the tensors that the config does not describe: a warm state if
    there is one, and the words of a table, whose length in bytes it does not know."""
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


def check_shapes(
    expected: Mapping[str, torch.Tensor], found: Mapping[str, tuple[int, ...]], source: str
) -> None:
    """Raise a ValueError unless the tensors have the expected names and shapes."""
    missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or unknown:
        raise ValueError(
            f"{source} does not fit its config: missing tensors {missing}, unknown {unknown}."
        )
    for name, tensor in expected.items():
        if found[name] != tuple(tensor.shape):
            raise ValueError(
                f"{source}: tensor '{name}' has the shape {found[name]}, but the config requires "
                f"{tuple(tensor.shape)}."
            )


def check_tensors(
    expected: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor], source: str
) -> None:
    """Raise a ValueError unless the tensors have the expected names and shapes, and finite
    floating-point values, or integers of the expected type."""
    check_shapes(expected, {name: tuple(tensor.shape) for name, tensor in found.items()}, source)
    for name, tensor in found.items():
        dtype = expected[name].dtype
        if tensor.dtype not in (FLOATS if dtype.is_floating_point else (dtype,)):
            kind = "float32, float16, bfloat16 or float64" if dtype.is_floating_point else dtype
            raise ValueError(
                f"{source}: tensor '{name}' is of the type {tensor.dtype}, expected {kind}."
            )
        # The extremes are not finite if any value is not, and finding them takes no memory.
        if tensor.numel() and not all(extreme.isfinite() for extreme in tensor.aminmax()):
            raise ValueError(f"{source}: tensor '{name}' has values that are not finite.")


def compact(tensors: Mapping[str, torch.Tensor], half: bool = False) -> dict[str, torch.Tensor]:
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


def to_bytes(model: BiLM) -> bytes:
    """A biLM's weights in the safetensors format, in half precision where that is exact."""
    return save_tensors(compact(model.state_dict()))


def from_bytes(config: BiLMConfig, data: bytes) -> BiLM:
    """The biLM that `to_bytes` wrote."""
    with reading("the weights of", "the serialized biLM"):
        tensors = load_tensors(data)
    return build(config, tensors, "The serialized biLM")


def write_tensors(
    tensors: Mapping[str, torch.Tensor], path: Path, metadata: dict[str, str] | None = None
) -> None:
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
