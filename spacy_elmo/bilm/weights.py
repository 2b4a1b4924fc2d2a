"""biLMs on disk: a directory with ``config.json`` and ``weights.safetensors``.

Beside them may lie ``vocab.txt`` and ``head.safetensors`` (the language model's softmax),
``meta.json`` (name, language, licence, sources) and the card ``README.md`` with ``LICENSE``.
No file here is ever unpickled.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors

from .config import BiLMConfig
from .model import BiLM

CONFIG, WEIGHTS, META = "config.json", "weights.safetensors", "meta.json"
VOCAB, HEAD = "vocab.txt", "head.safetensors"
DOCUMENTS = ("README.md", "LICENSE")  # travel with the weights wherever they go
GROUP = "spacy_elmo_weights"  # of entry points
EMBEDDED = Path(__file__).parent.parent / "models"


@dataclass
class Card:
    """What is to be known about weights besides their numbers.

    Attributes:
        meta: ``meta.json``: ``name``, ``lang``, ``version``, ``license``, ``sources``, …
        documents: texts by file name, of `DOCUMENTS`.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)


def find_weights(name_or_path: str | Path) -> Path:
    """The directory that a ``weights`` setting means: an embedded or installed name, or a path.

    A package installs weights by an entry point of the group `GROUP`, whose name is theirs and
    whose value is the module (``__init__.py``) in whose directory they lie.

    Raises:
        ValueError: there is none of these; the message lists the names.
    """
    name = str(name_or_path)
    embedded = {file.parent.name: file.parent for file in EMBEDDED.glob(f"*/{CONFIG}")}
    if name in embedded:
        return embedded[name]
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name in installed:
        module = installed[name].value
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise ValueError(
                f"The package that brings the ELMo weights '{name}' is damaged: it has no module "
                f"'{module}'. Install it anew."
            )
        return Path(spec.origin).parent
    path = Path(name_or_path)
    if path.is_dir():
        return path
    raise ValueError(
        f"Cannot find the ELMo weights {name!r}: there is no such directory, and the embedded and "
        f"installed weights are {sorted({*embedded, *installed})}. Set 'weights' to one of these "
        f"names or to a directory with {CONFIG} and {WEIGHTS}, or with options.json and one .hdf5 "
        f"file."
    )


def is_published(path: Path) -> bool:
    """Whether a directory has the published layout rather than our own."""
    return not (path / CONFIG).exists() and (path / "options.json").exists()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"'{path.parent}' has no {path.name}, so it holds no biLM. A directory of weights has "
            f"{CONFIG} and {WEIGHTS}, or options.json and one .hdf5 file."
        ) from None
    except (OSError, ValueError) as error:
        raise ValueError(f"Cannot read {path}: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object, found {type(data).__name__}.")
    return data


def read_config(path: Path) -> BiLMConfig:
    """The shape of the biLM in a directory of either layout, without opening its weights.

    Raises:
        ValueError: the config is missing or wrong.
    """
    if is_published(path):
        from .published import read_options  # lightly: few need it

        return read_options(path / "options.json")
    data = _read_json(path / CONFIG)
    try:
        return BiLMConfig.from_dict(data)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path / CONFIG}: {error}") from error


def read_card(path: Path) -> Card:
    """The card of the weights in a directory; empty where there is none."""
    meta = _read_json(path / META) if (path / META).exists() else {}
    documents = {
        name: (path / name).read_text(encoding="utf-8")
        for name in DOCUMENTS
        if (path / name).is_file()
    }
    return Card(meta, documents)


def load_bilm(path: Path) -> BiLM:
    """Load a biLM from a directory of either layout, in float32, in evaluation mode.

    Raises:
        ValueError: something is missing, damaged, or does not fit the config.
    """
    if is_published(path):
        from .published import read_published

        return read_published(path).eval()
    config = read_config(path)
    try:
        tensors = load_file(path / WEIGHTS)
    except FileNotFoundError:
        raise ValueError(f"'{path}' has a {CONFIG} but no {WEIGHTS}.") from None
    except (SafetensorError, OSError) as error:
        raise ValueError(f"Cannot read {path / WEIGHTS}: {error}") from error
    return build(config, tensors, str(path / WEIGHTS))


def build(config: BiLMConfig, tensors: Mapping[str, torch.Tensor], source: str) -> BiLM:
    """A biLM of a config with given weights, in float32, in evaluation mode.

    Args:
        config: its shape.
        tensors: by parameter name, in any floating type.
        source: where they come from, for errors.

    Raises:
        ValueError: a tensor is missing, unknown, or of the wrong shape.
    """
    with torch.device("meta"):
        model = BiLM(config)
    check_tensors(dict(model.state_dict()), tensors, source)
    # Copied, as the tensors of a file are views of it, and it may be written over.
    weights = {name: tensor.to(torch.float32, copy=True) for name, tensor in tensors.items()}
    model.load_state_dict(weights, assign=True)
    return model.eval()


def check_tensors(
    expected: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor], source: str
) -> None:
    """Raise a ValueError unless what was found has the names and shapes expected, and holds
    finite floating-point numbers alone."""
    missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or unknown:
        raise ValueError(
            f"{source} does not fit its config: missing tensors {missing}, unknown {unknown}."
        )
    for name, tensor in expected.items():
        if found[name].shape != tensor.shape:
            raise ValueError(
                f"{source}: tensor '{name}' has the shape {tuple(found[name].shape)}, but the "
                f"config asks for {tuple(tensor.shape)}."
            )
        if not found[name].is_floating_point():
            raise ValueError(f"{source}: tensor '{name}' holds {found[name].dtype}, not floats.")
        if not bool(torch.isfinite(found[name]).all()):
            raise ValueError(f"{source}: tensor '{name}' holds numbers that are not finite.")


def compact(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors in half precision if that loses nothing, else as they are."""
    halves = {}
    for name, tensor in tensors.items():
        half = tensor.to(torch.float16)
        if not torch.equal(half.to(tensor.dtype), tensor):
            return {name: tensor.contiguous() for name, tensor in tensors.items()}
        halves[name] = half.contiguous()
    return halves


def to_bytes(model: BiLM) -> bytes:
    """A biLM's weights in the safetensors format, half precision where that loses nothing."""
    return save_tensors(compact(model.state_dict()))


def from_bytes(config: BiLMConfig, data: bytes) -> BiLM:
    """The biLM that `to_bytes` wrote."""
    try:
        return build(config, load_tensors(data), "The serialized biLM")
    except SafetensorError as error:
        raise ValueError(f"The serialized biLM is damaged: {error}") from error


def write_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write a safetensors file with the permissions any new file gets."""
    path.write_bytes(save_tensors(dict(tensors)))


def save_bilm(model: BiLM, path: Path, card: Card | None = None, half: bool = False) -> None:
    """Write a biLM's config, weights and card into a directory that exists.

    Args:
        model: the biLM.
        path: where to; use `new_directory` to have it appear whole or not at all.
        card: what goes beside the weights.
        half: round the weights to half precision first.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    if half:
        tensors = {name: tensor.half().float() for name, tensor in tensors.items()}
    (path / CONFIG).write_text(json.dumps(model.config.to_dict(), indent=2) + "\n", "utf-8")
    write_tensors(compact(tensors), path / WEIGHTS)
    if card is not None:
        (path / META).write_text(json.dumps(card.meta, indent=2) + "\n", "utf-8")
        for name, text in card.documents.items():
            (path / name).write_text(text, "utf-8")


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Write a directory under a temporary name; it gets its own when all is written.

    A directory that was there before is replaced; if anything fails it stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as room:
        new, old = Path(room, "new"), Path(room, "old")
        new.mkdir()
        yield new
        if not path.exists():
            os.replace(new, path)
            return
        os.replace(path, old)
        try:
            os.replace(new, path)
        except BaseException:
            os.replace(old, path)
            raise
