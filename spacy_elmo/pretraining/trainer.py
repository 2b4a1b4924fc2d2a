"""The training loop of a biLM: read it from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ..bilm.find import load_bilm
from ..bilm.layout import VOCAB, Card
from ..bilm.model import BiLM
from ..bilm.warm import warm_state
from ..bilm.weights import new_directory, save_bilm
from .carried import Carried
from .checkpoint import CHECKPOINT, Progress, keep_checkpoint, load_checkpoint, save_checkpoint
from .config import PretrainConfig
from .corpus import Batch
from .estimate import rehearse
from .files import write_text
from .given import Given
from .head import load_head, save_head
from .learner import Learner
from .log import LOG, Follow, start_log
from .loss import BiLMLoss
from .perplexity import Perplexity, evaluate
from .prefetch import reading
from .prepare import BEST, CONFIG, LAST, Prepared, prepare
from .process import bound_kernels, keep_freed_memory, matmul_precision, stop_on_signals
from .processes import Processes, joined_processes
from .report import Report
from .results import describe, entry, evaluate_models, table
from .schedule import has_ended, has_read, learning_rate
from .softmax import SoftmaxHead
from .word_table import TABLE, write_table


def pretrain(
    given: PretrainConfig | Given | Callable[[], Given],
    out: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    quiet: bool = False,
) -> Progress:
    """Train a biLM as a config says; Ctrl-C ends it after the step under way, nothing is lost.

    Where torchrun has started several processes, they train it together; if it starts them again,
    because one was lost, they go on from the last checkpoint.

    Args:
        given: all settings, and what they name if it is not to be found by them alone; or what
            reads them: several processes fail in it together.
        out: directory for ``model-best``, ``model-last``, the checkpoint, the config and the log.
        device: where PyTorch computes, ``"cpu"`` or ``"cuda:0"``; see `joined_processes`.
        resume: go on from the checkpoint in ``out``, or from the beginning if there is none yet.
        quiet: print nothing.

    Returns:
        How far the run has come.

    Raises:
        ValueError: a setting, a path or a checkpoint is wrong (nothing has been written then);
            or a shard cannot be read any more, or the loss is not finite (the last checkpoint
            and the models stay as they were).
    """
    with joined_processes(device) as group:
        if callable(given):
            given = group.alike(given)
        elif isinstance(given, PretrainConfig):
            given = Given(given)
        return train(given, out, group, resume, quiet)


def train(given: Given, out: Path, group: Processes, resume: bool, quiet: bool) -> Progress:
    """`pretrain` in one of the processes; the first writes everything."""
    bound_kernels()
    estimates = not quiet  # the same in all processes
    quiet = quiet or not group.is_first
    report = Report(quiet)
    where = group.device

    def prepared() -> Prepared:
        config = given.config
        if config.training.state == "carried" and group.count > 1:
            raise ValueError(
                f'Config: [training] state is "carried", but {group.count} processes cannot carry '
                f'a state from sentence to sentence; take one, or state = "zero".'
            )
        return prepare(given, out, resume or group.own(out), report.say)

    run = group.alike(prepared)
    config = run.config
    progress, settings = run.progress, run.training
    if run.resumed and progress.n_processes != group.count:
        report.say(f"Processes: {progress.n_processes} until now, {group.count} from now on")
    progress.n_processes = group.count

    torch.manual_seed(settings.seed)
    model = BiLM(config.model, settings.dropout)
    if run.table is not None:
        model.word_vectors.fill(run.table, learns=settings.train_vectors)
    model = model.to(where).train()
    head = SoftmaxHead(len(run.vocab), config.model.projection_dim).to(where)
    modules: dict[str, nn.Module] = {"bilm": model, "head": head}
    sampler = run.sampler.to(where) if run.sampler is not None else None
    carried = None
    if settings.state == "carried":
        modules["carried"] = carried = Carried(config.model, settings.n_streams).to(where)
        model.set_warm_state(carried.of(1))
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, betas=(0.9, 0.99), fused=True)
    sizes = [sum(p.numel() for p in module.parameters()) / 1e6 for module in (model, head)]
    several = f", {group.count} processes" if group.count > 1 else ""
    report.say(f"{sizes[0]:.1f} M parameters, and {sizes[1]:.1f} M of the head; {where}{several}")

    def load() -> None:
        if run.resumed:
            load_checkpoint(out / CHECKPOINT, modules, optimizer, where)
            report.say(f"Resumed after step {progress.step:,} ({progress.words:,} words)")
        elif config.paths.weights is not None:
            start = load_bilm(config.paths.weights).to(where)
            copy_parameters(start, model)
            if not progress.held:  # the head goes on too
                copy_parameters(load_head(config.paths.weights)[0].to(where), head)
                if group.is_first:
                    progress.before = asdict(evaluate(start, head, run.dev))

    def warm_up() -> None:
        if carried is not None:
            model.set_warm_state(warm_state(model, run.passage))

    def write_model(name: str) -> None:
        check_finite(parameters, progress.step)
        with new_directory(out / name) as directory:
            save_bilm(model, directory, Card(**progress.card))
            save_head(head, run.vocab, directory)

    def write_checkpoint() -> None:
        check_finite(parameters, progress.step)
        save_checkpoint(out / CHECKPOINT, progress, config.to_dict(), modules, optimizer)
        if progress.step:
            keep_checkpoint(out / CHECKPOINT, progress.step, settings.keep_checkpoints)

    group.alike(load)
    follower = group.alike(lambda: follow_in(given, run, group))
    keep_freed_memory()
    if group.is_first:  # from here on there is something to be written
        out.mkdir(parents=True, exist_ok=True)
        group.take(out)
        run.vocab.write(out / VOCAB)
        write_text(out / CONFIG, config.to_text())
        if not run.resumed:
            if run.table is not None:
                write_table(run.table, out / TABLE)
            write_checkpoint()

    learner = Learner(
        BiLMLoss(model, head, settings.dropout, carried), group, settings.mixed_precision
    )
    losses: list[torch.Tensor] = []
    shown_words, shown_seconds = progress.words, progress.seconds
    last_checkpoint = time.monotonic()
    with (
        follower as follow,
        start_log(out / LOG if group.is_first else None, run.log, follow) as log,
    ):
        with (
            matmul_precision(settings.matmul_precision),
            report.steps(settings.max_steps, progress.step),
            reading(run.corpus.batches(progress.place, group.share), where) as batches,
            stop_on_signals(quiet) as stopped,
        ):
            n_parts = settings.accumulate_gradient
            if estimates and not has_ended(progress, settings):
                estimate, batches = rehearse(learner, batches, sampler, n_parts, run.resumed)
                left = settings.max_steps - progress.step
                report.say(estimate.describe(left, run.in_epoch))
            if progress.step == 0 and progress.before is not None and not run.log:
                result = Perplexity(**progress.before)
                report.say(f"before: {describe(result)}")
                log.write(step=0, words=0, **entry(result))
            while not has_ended(progress, settings) and not group.any(stopped()):
                started = time.monotonic()
                parts: list[Batch] = []
                while len(parts) < n_parts and not has_read(progress, settings):
                    part, progress.place = next(batches)
                    parts.append(part)
                rate = learning_rate(settings, progress.step)
                for param_group in optimizer.param_groups:
                    param_group["lr"] = rate
                if progress.held:
                    learner.hold(progress.step < progress.held)
                # All randomness of a step follows from its number, so a resumed run has the same,
                # and so do all processes; only what drops out differs from one to the other.
                rng = np.random.default_rng([settings.seed, progress.step])
                torch.manual_seed(int(rng.integers(2**31)) + group.rank)
                candidates = sampler.sample(rng) if sampler is not None else None
                optimizer.zero_grad()
                losses.append(learner.backward(parts, candidates))
                torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
                optimizer.step()
                progress.step += 1
                progress.words += sum(part.of_whole[0] for part in parts)
                progress.seconds += time.monotonic() - started
                report.step()
                log.step(progress.step)
                last = has_ended(progress, settings)
                if progress.step % settings.log_every == 0 or last:
                    mean = group.sum(float(torch.stack(losses).mean()))
                    losses.clear()
                    if group.is_first:  # who speaks for all
                        check_finite([torch.tensor(mean)], progress.step)
                    seconds = max(progress.seconds - shown_seconds, 1e-9)
                    report.show(progress.step, mean, (progress.words - shown_words) / seconds)
                    shown_words, shown_seconds = progress.words, progress.seconds
                    log.write(
                        step=progress.step,
                        words=progress.words,
                        loss=mean,
                        lr=rate,
                        seconds=progress.seconds,
                        epoch=progress.place.epoch,
                    )
                if not group.is_first:
                    continue  # and wait for the first before the next step
                evaluating = progress.step % settings.eval_every == 0 or last
                if evaluating:
                    started = time.monotonic()
                    check_finite(parameters, progress.step)
                    warm_up()
                    result = evaluate(model, head, run.dev, max_words=settings.eval_words)
                    seconds = time.monotonic() - started
                    progress.seconds += seconds
                    shown_seconds += seconds
                    report.say(f"step {progress.step:,}: {describe(result)}")
                    log.write(step=progress.step, words=progress.words, **entry(result))
                    if progress.best is None or result.mean < progress.best:
                        progress.best = result.mean
                        write_model(BEST)
                # There is never a model of a run without a checkpoint to resume it from.
                if evaluating or time.monotonic() - last_checkpoint > settings.checkpoint_seconds:
                    write_checkpoint()
                    last_checkpoint = time.monotonic()
            warm_up()
            if group.is_first:
                write_checkpoint()
                write_model(LAST)

        if not has_ended(progress, settings):
            report.say(f"Stopped after step {progress.step:,}; go on with --resume")
        else:
            progress.n_steps = progress.step
            if group.is_first:
                report.say(f"All {progress.step:,} steps are done; reading the whole dev text …")
                results = evaluate_models(out, run.dev, where)
                if progress.before is not None:
                    results = {"before": Perplexity(**progress.before), **results}
                for name, result in results.items():
                    log.write(step=progress.step, model=name, **asdict(result), mean=result.mean)
                report.say(table(results))
    group.wait()
    return progress


def follow_in(
    given: Given, run: Prepared, group: Processes
) -> AbstractContextManager[Follow | None]:
    """A context in which the logger of the config is told the log, in the first process."""
    if given.follow is None or not group.is_first:
        return nullcontext()
    return given.follow(run.log)


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Give a module the numbers of another of the same shape."""
    numbers = source.state_dict()  # what learns in the one may not learn in the other
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(numbers[name])


def check_finite(tensors: Sequence[torch.Tensor], step: int) -> None:
    """Raise a ValueError if a loss or a weight is infinite or NaN."""
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors):
        raise ValueError(
            f"The loss or a weight is not finite at step {step:,}. The checkpoint and the models "
            f"written before stay as they are: go on from them with --resume and a lower "
            f"--training.learning_rate, or start anew with one."
        )
