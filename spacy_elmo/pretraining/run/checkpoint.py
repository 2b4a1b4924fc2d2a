"""The state of a training run in one file, written whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ...bilm.files import atomic_file
from ...bilm.weights import check_tensors
from ...bilm.word_vectors import WordVectors
from ..config import PretrainConfig
from ..data.corpus import CorpusPosition

CHECKPOINT, KEPT = "checkpoint.safetensors", "checkpoint-?????????.safetensors"

# What may not change on resuming: it makes the parameters' shapes, or the order of the corpus.
# (The vocabulary of a resumed run is the one in its directory.)
TRAINING = ("seed", "batch_words", "state", "n_streams", "train_vectors")
FIXED = ("[model] ", "[corpus] ", *(f"[training] {name}:" for name in TRAINING))


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        step: steps of the optimizer done; each step's random numbers follow from it.
        place: the next batch of the corpus.
        words: words trained on, boundaries not counted.
        seconds: time spent training, evaluations and all.
        best: lowest mean perplexity on the dev text so far; None before the first evaluation.
        text: fingerprint of the training text, for which alone ``place`` means anything.
        dev_text: that of the held-out text, for which alone ``best`` does.
        n_steps: those that the run is to have.
        held: the first steps, in which only the head learns.
        n_processes: those that train it.
        before: perplexity of the dev text before the first step, by the biLM that was started from.
        card: what is to be said of the biLM, see `layout.Card`.
    """

    step: int = 0
    place: CorpusPosition = field(default_factory=CorpusPosition)
    words: int = 0
    seconds: float = 0.0
    best: float | None = None
    text: str = ""
    dev_text: str = ""
    n_steps: int = 0
    held: int = 0
    n_processes: int = 1
    before: dict[str, Any] | None = None
    card: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(
    path: Path,
    progress: Progress,
    config: dict[str, Any],
    modules: dict[str, torch.nn.Module],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Write everything a run needs to go on, whole or not at all.

    Args:
        path: the file.
        progress: how far it has come.
        config: the run's settings, kept to be compared on resuming.
        modules: by name, their parameters go in.
        optimizer: its state goes in, in order of its parameters.
    """
    tensors = {
        f"{name}.{key}": value
        for name, module in modules.items()
        for key, value in _changing(module).items()
    }
    for number, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            tensors[f"optimizer.{number}.{key}"] = value
    metadata = {"progress": json.dumps(asdict(progress)), "config": json.dumps(config)}
    with atomic_file(path) as temporary:
        save_file({k: v.contiguous() for k, v in tensors.items()}, temporary, metadata)


def _changing(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """What there is to be kept of a module: all but a table of word vectors that does not learn."""
    fixed = {
        f"{path}.{name}"
        for path, part in module.named_modules()
        if isinstance(part, WordVectors)
        for name, _ in part.named_buffers()
    }
    return {name: tensor for name, tensor in module.state_dict().items() if name not in fixed}


def keep_checkpoint(path: Path, step: int, number: int) -> None:
    """Keep the checkpoint just written under its step too, and so the last few.

    Args:
        path: the checkpoint.
        step: after which it was written.
        number: how many are kept; with 1 there is only the checkpoint itself.
    """
    of_steps = {int(f.stem.rpartition("-")[2]): f for f in path.parent.glob(KEPT)}
    if number > 1:
        of_steps[step] = path.with_name(f"{path.stem}-{step:09d}{path.suffix}")
        with atomic_file(of_steps[step]) as temporary:
            shutil.copyfile(path, temporary)
    # A run that has been taken back to an earlier step has another future.
    until_now = sorted(done for done in of_steps if done <= step)
    kept = until_now[-number:] if number > 1 else []
    for done, file in of_steps.items():
        if done not in kept:
            file.unlink(missing_ok=True)


def read_progress(path: Path) -> tuple[Progress, dict[str, Any]]:
    """A checkpoint's progress and config.

    Raises:
        ValueError: there is no checkpoint, or it cannot be read.
    """
    if not path.is_file():
        raise ValueError(f"There is no checkpoint {path} to resume from.")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        data = json.loads(metadata["progress"])
        data["place"] = CorpusPosition(**data["place"])
        return Progress(**data), json.loads(metadata["config"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"Cannot read the checkpoint {path}: {error}") from error


def load_checkpoint(
    path: Path,
    modules: dict[str, torch.nn.Module],
    optimizer: torch.optim.Optimizer,
    device: torch.device,
) -> None:
    """Put a checkpoint's tensors into modules and optimizer that were built alike.

    Raises:
        ValueError: the checkpoint cannot be read, or its tensors do not fit.
    """
    try:
        with safe_open(path, "pt", device=str(device)) as file:
            # Copies: the file is mapped into memory, and will be replaced.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"Cannot read the checkpoint {path}: {error}") from error
    for name, module in modules.items():
        prefix = f"{name}."
        found = {
            key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)
        }
        check_tensors(_changing(module), found, f"The checkpoint {path}, {name}")
        module.load_state_dict(found, strict=False)
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            state.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def check_resumable(
    before: dict[str, dict[str, Any]], config: PretrainConfig, say: Callable[[str], None]
) -> None:
    """Compare a checkpoint's config with the one given now, and tell what differs.

    Settings that were not there when the checkpoint was written count as having their default.

    Raises:
        ValueError: what differs would change the model or the place in the corpus.
    """
    # What the run was started from does not matter any more.
    start = {"weights": config.paths.weights, "vectors": config.paths.vectors}
    defaults = {**before, "paths": {**before["paths"], "weights": None, "vectors": None}}
    was = json.loads(json.dumps(PretrainConfig.from_dict(defaults).to_dict()))
    was["paths"] |= start
    now = json.loads(json.dumps(config.to_dict()))
    changed = [
        f"[{section}] {name}: {was[section].get(name)!r} → {settings.get(name)!r}"
        for section, settings in now.items()
        for name in {**was[section], **settings}
        if was[section].get(name) != settings.get(name)
    ]
    fixed = [line for line in changed if line.startswith(FIXED)]
    if fixed:
        raise ValueError(
            "Cannot resume, because these settings differ from the checkpoint's: "
            f"{'; '.join(fixed)}. Set them back, or start a new run in another directory."
        )
    for line in changed:
        say(f"Changed since the checkpoint: {line}")
