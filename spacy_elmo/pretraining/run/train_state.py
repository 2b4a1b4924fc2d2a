"""The state of a run: made, loaded, evaluated, written."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterable
from dataclasses import asdict

import torch
from torch import nn

from ...bilm.model import BiLM
from ...bilm.warm_state import compute_warm_state
from ...lm.head import load_head, save_head
from ...lm.perplexity import Perplexity, evaluate
from ...lm.softmax import LogUniformSampler, SoftmaxHead
from ...lm.stream_state import StreamState
from ...util.files import atomic_directory, write_json
from ...weights.find import load_bilm
from ...weights.layout import HEAD, SUBWORDS, VOCAB, WEIGHTS, Card
from ...weights.native import save_bilm, save_statistics, save_subwords
from ...weights.statistics import compute_statistics
from ...weights.subwords import Subwords
from ..config import CONFIG
from ..data.floret import train_floret
from ..data.word_table import TABLE, write_table
from ..train_step import TrainState
from .checkpoint import CHECKPOINT, TrainingProgress, keep_latest, load_checkpoint, save_checkpoint
from .distributed import ProcessGroup
from .machine import matmul_precision
from .prepare_run import Run
from .starting_point import BEST, LAST

# Whatever the precision in training: evaluations are compared.
at_the_highest_precision = matmul_precision("highest")


def create_train_state(run: Run, group: ProcessGroup, progress: TrainingProgress) -> TrainState:
    """The biLM and its head at random initialization, and their optimizer."""
    config, settings = run.config, run.config.training
    torch.manual_seed(settings.seed)
    model = BiLM(config.model, settings.dropout, settings.compiled_lstm)
    if run.table is not None:
        model.word_vectors.fill(run.table, trainable=settings.train_vectors)
    head = SoftmaxHead(len(run.vocab), config.model.projection_dim)
    sampler = streams = student = None
    if config.softmax.kind == "sampled":
        sampler = LogUniformSampler(len(run.vocab), config.softmax.n_candidates)
    if settings.state == "carried":
        streams = StreamState(config.model, settings.n_streams)
        model.set_warm_state(streams.first(1))
    if run.teacher_size is not None:
        student = nn.Linear((config.model.n_layers + 1) * config.model.width, run.teacher_size)
    return TrainState(model, head, settings, group, sampler, streams, progress, student)


def load_state(state: TrainState, run: Run) -> None:
    """Load the checkpoint of a resumed run, or the weights that a new one starts from, if any.

    Raises:
        ValueError: they are missing or damaged.
    """
    device, progress = state.group.device, state.progress
    if run.resumed:
        load_checkpoint(run.out / CHECKPOINT, state.modules, state.optimizer, device)
        return
    if run.config.start is None:
        return
    start = load_bilm(run.config.start).to(device)
    copy_parameters(start, state.model)
    if progress.head_first:  # the head is new
        return
    head, _ = load_head(run.config.start)
    copy_parameters(head.to(device), state.head)
    if state.group.is_first:
        with matmul_precision("highest"):
            progress.before = asdict(evaluate(start, state.head, run.dev))


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Copy the values of a module's parameters from another module of the same shape."""
    values = source.state_dict()  # a parameter of the one may be a buffer of the other
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(values[name])


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


@at_the_highest_precision
def update_warm_state(state: TrainState, run: Run) -> None:
    """Set the biLM's warm state, if it is trained with stream states."""
    if state.streams is not None:
        state.model.set_warm_state(compute_warm_state(state.model, run.warm_up_text))


@at_the_highest_precision
def evaluate_state(state: TrainState, run: Run) -> Perplexity:
    """Perplexity on the held-out text, or on the part of it that the settings name.

    Raises:
        ValueError: a weight is not finite.
    """
    check_finite(state.parameters, state.progress.step)
    update_warm_state(state, run)
    return evaluate(state.model, state.head, run.dev, max_words=state.settings.eval_words)


@at_the_highest_precision
def evaluate_models(run: Run, device: torch.device) -> dict[str, Perplexity]:
    """Perplexities on the whole held-out text of a run's models, as they are on disk.

    Statistics of the text are added to them.
    """
    results: dict[str, Perplexity] = {}
    best, last = run.out / BEST, run.out / LAST
    for path in filter(lambda path: path.exists(), (best, last)):
        model = load_bilm(path).to(device)
        if results and all(
            filecmp.cmp(best / name, last / name, shallow=False) for name in (WEIGHTS, HEAD)
        ):
            results[LAST] = results[BEST]
        else:
            head, _ = load_head(path)
            results[path.name] = evaluate(model, head.to(device), run.dev)
        save_statistics(compute_statistics(model, run.dev), path)
    return results


def start_files(run: Run, state: TrainState) -> None:
    """Write what a run has at its start."""
    out, step = run.out, state.progress.step
    subwords = None if run.resumed else train_subwords(run)
    out.mkdir(parents=True, exist_ok=True)
    state.group.claim(out)
    if subwords is not None:
        save_subwords(subwords, out)
    run.vocab.write(out / VOCAB)
    write_json(out / CONFIG, run.config.to_dict())
    if not run.resumed:
        if run.table is not None:
            write_table(run.table, out / TABLE)
        write_checkpoint(state, run)
    elif step:  # the process may have been killed before it had copied it
        keep_latest(out / CHECKPOINT, step, run.config.training.keep_checkpoints)


def train_subwords(run: Run) -> Subwords | None:
    """Let floret train static vectors on the text, if that is wanted; else take those beside the
    weights that the run starts from, if any."""
    config = run.config
    if config.training.subword_epochs:
        text = run.corpus.reader.sentences()
        return train_floret(text, config.training, config.vocab.min_count)
    return None if config.start is None else config.start.subwords()


def write_model(state: TrainState, run: Run, name: str) -> None:
    """Write the weights to a directory of the run, whole or not at all.

    Raises:
        ValueError: a weight is not finite; an existing directory stays as it is.
    """
    check_finite(state.parameters, state.progress.step)
    with atomic_directory(run.out / name) as directory:
        save_bilm(state.model, directory, Card(**state.progress.card))
        save_head(state.head, run.vocab, directory)
        if (run.out / SUBWORDS).is_file():
            shutil.copyfile(run.out / SUBWORDS, directory / SUBWORDS)


def write_checkpoint(state: TrainState, run: Run) -> None:
    """Write all that the run needs to be resumed.

    Raises:
        ValueError: a weight is not finite; the last checkpoint stays as it is.
    """
    progress, path = state.progress, run.out / CHECKPOINT
    check_finite(state.parameters, progress.step)
    save_checkpoint(path, progress, run.config.to_dict(), state.modules, state.optimizer)
    if progress.step:
        keep_latest(path, progress.step, state.settings.keep_checkpoints)


def check_finite(tensors: Iterable[torch.Tensor], step: int) -> None:
    """Raise a ValueError if a loss or a weight is infinite or NaN."""
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors):
        raise ValueError(
            f"The loss or a weight is not finite at step {step:,}. The checkpoint and the models "
            f"written earlier are unchanged: resume from them with --resume and a lower "
            f"--training.learning_rate, or start again with one."
        )
