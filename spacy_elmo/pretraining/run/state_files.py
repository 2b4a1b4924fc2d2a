"""The state of a run, from its initialization to its files."""

from __future__ import annotations

import filecmp
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

from ...bilm.model import BiLM
from ...bilm.warm_state import compute_warm_state
from ...lm.head import load_head, save_head
from ...lm.perplexity import Perplexity, evaluate
from ...lm.softmax import LogUniformSampler, SoftmaxHead
from ...lm.stream_state import StreamState
from ...util.files import atomic_directory
from ...weights.find import load_bilm
from ...weights.layout import HEAD, WEIGHTS, Card
from ...weights.native import save_bilm, save_statistics
from ...weights.statistics import compute_statistics
from ..data.floret import read_floret, train_floret
from ..train_step import TrainState
from .checkpoint import CHECKPOINT, TrainingProgress, keep_latest, load_checkpoint, save_checkpoint
from .distributed import ProcessGroup
from .machine import matmul_precision
from .prepare_run import BEST, LAST, Run


def create_train_state(run: Run, group: ProcessGroup, progress: TrainingProgress) -> TrainState:
    """The biLM and its head at random initialization, and their optimizer."""
    config, settings = run.config, run.config.training
    torch.manual_seed(settings.seed)
    model = BiLM(config.model, settings.dropout, settings.compiled_lstm)
    if run.table is not None:
        model.word_vectors.fill(run.table, trainable=settings.train_vectors)
    head = SoftmaxHead(len(run.vocab), config.model.projection_dim)
    sampler = streams = None
    if config.softmax.kind == "sampled":
        sampler = LogUniformSampler(len(run.vocab), config.softmax.n_candidates)
    if settings.state == "carried":
        streams = StreamState(config.model, settings.n_streams)
    student = None
    if run.teacher_size is not None:
        student = nn.Linear((config.model.n_layers + 1) * config.model.width, run.teacher_size)
    state = TrainState(model, head, settings, group, sampler, streams, progress, student)
    if streams is not None:
        model.set_warm_state(streams.first(1))
    return state


def load_state(state: TrainState, run: Run) -> None:
    """Load the checkpoint of a resumed run, or the weights that a new one starts from, if any.

    Raises:
        ValueError: they are missing or damaged.
    """
    device, progress = state.group.device, state.progress
    if run.resumed:
        load_checkpoint(run.out / CHECKPOINT, _modules(state), state.optimizers, device)
        return
    fill_subwords(state.model, run)
    if run.config.start is not None:
        start = load_bilm(run.config.start).to(device)
        copy_parameters(start, state.model)
        if not progress.head_first:  # the head comes with the biLM
            head, _ = load_head(run.config.start)
            copy_parameters(head.to(device), state.head)
            if state.group.is_first:
                if start.config.subwords != state.model.config.subwords:  # it has new ones
                    start = state.model
                progress.before = asdict(_evaluate(start, state.head, run))


def fill_subwords(model: BiLM, run: Run) -> None:
    """Give new subwords the vectors that floret has trained, or now trains, if that is wanted."""
    config, n_epochs = run.config, run.config.training.subword_epochs
    if config.paths.subwords is not None:
        table = read_floret(Path(config.paths.subwords))
    elif n_epochs and config.model.subwords is not None:
        text = run.corpus.reader.sentences()
        table = train_floret(text, config.model.subwords, n_epochs, config.vocab.min_count)
    else:
        return
    assert model.char_cnn.subwords is not None
    with torch.no_grad():
        model.char_cnn.subwords.table.copy_(table)


def describe_state(state: TrainState) -> str:
    """One line: the sizes, and where they are trained."""
    bilm, head = (sum(p.numel() for p in m.parameters()) / 1e6 for m in (state.model, state.head))
    group, sampler = state.group, state.sampler
    candidates = processes = ""
    if sampler is not None:
        candidates = f", {sampler.n_candidates:,} candidates of {sampler.n_words:,} words"
    if group.world_size > 1:
        processes = f", {group.world_size} processes"
    if group.device.type == "cpu":
        n_threads = torch.get_num_threads()
        processes += f", {n_threads} thread{'s' if n_threads > 1 else ''}"
    return f"{bilm:.1f} M parameters, head: {head:.1f} M{candidates}; {group.device}{processes}"


def update_warm_state(state: TrainState, run: Run) -> None:
    """Set the biLM's warm state, if it is trained with stream states."""
    if state.streams is not None:
        with matmul_precision("highest"):
            state.model.set_warm_state(compute_warm_state(state.model, run.warm_up_text))


def evaluate_state(state: TrainState, run: Run) -> Perplexity:
    """Perplexity on the held-out text, or on the part of it that the settings name.

    Raises:
        ValueError: a weight is not finite.
    """
    check_finite(state.parameters, state.progress.step)
    update_warm_state(state, run)
    return _evaluate(state.model, state.head, run, state.settings.eval_words)


def evaluate_models(run: Run, device: torch.device) -> dict[str, Perplexity]:
    """Perplexities on the whole held-out text of a run's models, as they are on disk."""
    results: dict[str, Perplexity] = {}
    best, last = run.out / BEST, run.out / LAST
    for path in filter(lambda path: path.exists(), (best, last)):
        if results and all(
            filecmp.cmp(best / name, last / name, shallow=False) for name in (WEIGHTS, HEAD)
        ):
            results[LAST] = results[BEST]
        else:
            head, _ = load_head(path)
            results[path.name] = _evaluate(load_bilm(path).to(device), head.to(device), run)
    return results


def write_statistics(run: Run, device: torch.device) -> None:
    """Add statistics of the held-out text to a run's models, as they are on disk."""
    for path in filter(lambda path: path.exists(), (run.out / BEST, run.out / LAST)):
        with matmul_precision("highest"):
            save_statistics(compute_statistics(load_bilm(path).to(device), run.dev), path)


def _evaluate(model: BiLM, head: SoftmaxHead, run: Run, max_words: int = 0) -> Perplexity:
    """At the highest precision, whatever the training has: evaluations are compared."""
    with matmul_precision("highest"):
        return evaluate(model, head, run.dev, max_words=max_words)


def write_model(state: TrainState, run: Run, name: str) -> None:
    """Write the weights to a directory of the run, whole or not at all.

    Raises:
        ValueError: a weight is not finite; an existing directory stays as it is.
    """
    check_finite(state.parameters, state.progress.step)
    with atomic_directory(run.out / name) as directory:
        save_bilm(state.model, directory, Card(**state.progress.card))
        save_head(state.head, run.vocab, directory)


def write_checkpoint(state: TrainState, run: Run) -> None:
    """Write all that the run needs to be resumed.

    Raises:
        ValueError: a weight is not finite; the last checkpoint stays as it is.
    """
    progress, path = state.progress, run.out / CHECKPOINT
    check_finite(state.parameters, progress.step)
    save_checkpoint(path, progress, run.config.to_dict(), _modules(state), state.optimizers)
    if progress.step:
        keep_latest(path, progress.step, state.settings.keep_checkpoints)


def _modules(state: TrainState) -> dict[str, nn.Module]:
    """By their names in a checkpoint."""
    modules: dict[str, nn.Module] = {"bilm": state.model, "head": state.head}
    others = {"carried": state.streams, "teacher": state.student}
    return modules | {name: module for name, module in others.items() if module is not None}


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Copy the values of a module's parameters from another module of the same shape.

    Subwords that the source does not have stay as they are.
    """
    values = source.state_dict()  # a parameter of the one may be a buffer of the other
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            if name in values or ".subwords." not in name:
                parameter.copy_(values[name])


def check_finite(tensors: Iterable[torch.Tensor], step: int) -> None:
    """Raise a ValueError if a loss or a weight is infinite or NaN."""
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors):
        raise ValueError(
            f"The loss or a weight is not finite at step {step:,}. The checkpoint and the models "
            f"written earlier are unchanged: resume from them with --resume and a lower "
            f"--training.learning_rate, or start again with one."
        )
