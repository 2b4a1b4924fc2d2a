"""The state of a run in one file, written whole or not at all; and what a run is resumed from."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from ...bilm.static_vectors import WordVectors
from ...util.files import atomic_file, reading
from ...util.settings import Settings, at_least
from ...weights.layout import Card
from ...weights.native import check_tensors, write_tensors
from ..config import Notify, PretrainConfig
from ..data.corpus import CorpusPosition

CHECKPOINT, EARLIER = "checkpoint.safetensors", "checkpoint-?????????.safetensors"
BEST, LAST = "model-best", "model-last"

# What may not change on resuming: it fixes the parameters' shapes or the order of the corpus, or is
# of use only before the first step.
TRAINING = "seed", "batch_words", "state", "n_streams", "train_vectors", "teacher", "head_first"
FIXED = ("[model] ", "[corpus] ", "[vocab] ", *(f"[training] {name}:" for name in TRAINING))
# A run that ends with its epochs could not tell how many steps these have.
FIXED_BY_EPOCHS = (*FIXED, "[training] accumulate_gradient:")

STARTS = ("weights", "vectors")  # [paths] that matter at the start of a run only


@dataclass
class TrainingProgress(Settings):
    """Progress of a run.

    Attributes:
        step: optimizer steps taken; the random numbers of a step follow from it.
        position: the next batch of the corpus.
        words: words trained on, without boundaries.
        seconds: time spent in training and evaluation.
        best: lowest mean perplexity on the dev text so far; None before the first evaluation.
        train_fingerprint: of the training text, to which alone ``position`` applies.
        dev_fingerprint: of the held-out text, to which alone ``best`` applies.
        n_steps: steps of the whole run.
        head_first: the first steps, in which the biLM is frozen and only the head is trained.
        world_size: processes that train it.
        before: perplexity of the dev text before the first step, if the run started from a biLM.
        card: name, language, licence and sources of the biLM, see `weights.layout.Card`.
    """

    title = "Progress:"
    step: int = at_least(0, 0)
    position: CorpusPosition = field(default_factory=CorpusPosition)
    words: int = at_least(0, 0)
    seconds: float = 0.0
    best: float | None = None
    train_fingerprint: str = ""
    dev_fingerprint: str = ""
    n_steps: int = at_least(0, 0)
    head_first: int = at_least(0, 0)
    world_size: int = at_least(1, 1)
    before: dict[str, Any] | None = None
    card: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(
    path: Path,
    progress: TrainingProgress,
    config: PretrainConfig,
    modules: dict[str, torch.nn.Module],
    optimizer: torch.optim.Adam,
) -> None:
    """Write all that a run needs to be resumed, whole or not at all.

    Args:
        path: the file.
        progress: how far the run has come.
        config: the run's settings, compared on resuming.
        modules: by name; their parameters and buffers.
        optimizer: its state, in the order of its parameters.
    """
    tensors = {
        f"{name}.{key}": value
        for name, module in modules.items()
        for key, value in _state_to_save(module).items()
    }
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in state.items()}
    facts = {"progress": asdict(progress), "config": config.to_dict()}
    with atomic_file(path) as temporary:
        write_tensors(tensors, temporary, {key: json.dumps(value) for key, value in facts.items()})


def _state_to_save(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The state of a module without the buffers of word vectors: frozen ones never change."""
    fixed = {
        f"{path}.{name}"
        for path, part in module.named_modules()
        if isinstance(part, WordVectors)
        for name, _ in part.named_buffers()
    }
    return {name: tensor for name, tensor in module.state_dict().items() if name not in fixed}


def keep_latest(path: Path, step: int, number: int) -> None:
    """Copy the checkpoint just written to a file named by its step, and delete old copies.

    Args:
        path: the checkpoint.
        step: after which it was written.
        number: how many copies to keep; with 1 there is only the checkpoint itself.
    """
    latest = path.with_name(f"{path.stem}-{step:09d}{path.suffix}")
    if number > 1:
        with atomic_file(latest) as temporary:
            shutil.copyfile(path, temporary)
    copies = sorted(path.parent.glob(EARLIER))
    # Those of later steps are from before the run was reset to an earlier step.
    past = [copy for copy in copies if copy <= latest]
    for copy in set(copies).difference(past[-number:] if number > 1 else []):
        copy.unlink(missing_ok=True)


def read_progress(path: Path) -> tuple[TrainingProgress, PretrainConfig]:
    """A checkpoint's progress, and its config without what the run started from.

    Raises:
        ValueError: there is no checkpoint, or it cannot be read.
    """
    if not path.is_file():
        raise ValueError(f"There is no checkpoint {path} to resume from.")
    with reading("the checkpoint", path):
        with safe_open(path, "pt") as file:
            facts = {key: json.loads(text) for key, text in file.metadata().items()}
        data, config = facts["progress"], facts["config"]
        progress = TrainingProgress(**{**data, "position": CorpusPosition(**data["position"])})
        Card(**progress.card)
        config["paths"] |= dict.fromkeys(STARTS)
        return progress, PretrainConfig.from_dict(config)


def load_checkpoint(
    path: Path,
    modules: dict[str, torch.nn.Module],
    optimizer: torch.optim.Adam,
    device: torch.device,
) -> None:
    """Load a checkpoint's tensors into modules and their optimizer, of the same shapes.

    Raises:
        ValueError: the checkpoint cannot be read, or its tensors do not fit.
    """
    with reading("the checkpoint", path), safe_open(path, "pt", device=str(device)) as file:
        # Copies: the file is memory-mapped, and will be replaced.
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118

    def part(name: str, expected: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        start = f"{name}."
        found = {key.removeprefix(start): t for key, t in tensors.items() if key.startswith(start)}
        if found or name in modules:  # none for a parameter that has been frozen so far
            check_tensors(expected, found, f"The checkpoint {path}, {name}")
        return found

    for name, module in modules.items():
        module.load_state_dict(part(name, _state_to_save(module)), strict=False)
    states = {}
    for number, parameter in enumerate(optimizer.param_groups[0]["params"]):
        expected = {"step": torch.tensor(0.0), "exp_avg": parameter, "exp_avg_sq": parameter}
        states[number] = part(f"optimizer.{number}", expected)
    states = {number: state for number, state in states.items() if state}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def resume(
    out: Path, config: PretrainConfig, now: TrainingProgress, notify: Notify
) -> TrainingProgress:
    """The progress of the run in a directory.

    Args:
        out: the directory.
        config: the settings now.
        now: has the fingerprints of the texts now, and the number of processes.
        notify: prints what has changed.

    Raises:
        ValueError: there is no complete checkpoint, or the run cannot be resumed from it.
    """
    progress, before = read_progress(out / CHECKPOINT)
    for path in filter(Path.is_symlink, (out / BEST, out / LAST)):
        raise ValueError(
            f"Cannot resume: '{path}' is a link, and what it points to would be replaced. Put the "
            f"directory itself there, or remove the link."
        )
    check_resumable(before, config, notify)
    if progress.train_fingerprint != now.train_fingerprint:
        raise ValueError(
            "Cannot resume: the training text is not the one that the run was started with. Its "
            "files have other names, sizes or another order, or another reader or tokenizer. Put "
            "it back, or start a new run in another directory."
        )
    if progress.dev_fingerprint != now.dev_fingerprint:
        notify("The held-out text has changed: the best model is chosen again")
        progress.best, progress.dev_fingerprint = None, now.dev_fingerprint
        progress.before = None  # the table would compare it with perplexities of another text
    elif before.training.eval_words != config.training.eval_words:
        notify("Evaluations read another part of the held-out text: the best model is chosen again")
        progress.best = None
    if not (out / BEST).exists():
        progress.best = None
    if progress.world_size != now.world_size:
        notify(f"Number of processes: {progress.world_size} before, now {now.world_size}")
    progress.world_size = now.world_size
    return progress


def check_resumable(before: PretrainConfig, config: PretrainConfig, notify: Notify) -> None:
    """Compare a checkpoint's config with the present one, and print what differs.

    Raises:
        ValueError: a difference would change the model, the position in the corpus, or where an
            epoch ends.
    """
    was, now = before.to_dict(), config.to_dict()
    now["paths"] |= dict.fromkeys(STARTS)
    changed = [
        f"[{section}] {name}: {was[section].get(name)!r} → {settings.get(name)!r}"
        for section, settings in now.items()
        for name in {**was[section], **settings}
        if was[section].get(name) != settings.get(name)
    ]
    kinds = FIXED_BY_EPOCHS if config.training.max_epochs else FIXED
    fixed = [line for line in changed if line.startswith(kinds)]
    if fixed:
        raise ValueError(
            "Cannot resume, because these settings differ from the checkpoint's: "
            f"{'; '.join(fixed)}. Set them back, or start a new run in another directory."
        )
    for line in changed:
        notify(f"Changed since the checkpoint: {line}")
