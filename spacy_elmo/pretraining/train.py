"""The training loop of a biLM: read it from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path

import torch

from ..bilm.files import write_text
from ..bilm.layout import VOCAB
from ..lm.batches import Batch
from ..lm.perplexity import Perplexity
from .config import PretrainConfig
from .data.corpus import CorpusPosition
from .data.prefetch import reading
from .data.word_table import TABLE, write_table
from .run.checkpoint import Progress
from .run.distributed import Processes, joined_processes
from .run.given import Given
from .run.log import LOG, Follow, Log, start_log
from .run.machine import bound_kernels, keep_freed_memory, matmul_precision, stop_on_signals
from .run.profile import rehearse
from .run.report import Report
from .run.results import describe, entry, evaluate_models, table
from .run.schedule import has_ended, has_read, learning_rate
from .run.setup import BEST, CONFIG, LAST, Prepared, prepare
from .run.state import Trainee, check_finite


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
    report = Report(quiet or not group.is_first)

    def prepared() -> Prepared:
        config = given.config
        if config.training.state == "carried" and group.count > 1:
            raise ValueError(
                f'Config: [training] state is "carried", but {group.count} processes cannot carry '
                f'a state from sentence to sentence; take one, or state = "zero".'
            )
        return prepare(given, out, resume or group.own(out), report.say)

    run = group.alike(prepared)
    progress = run.progress
    if run.resumed and progress.n_processes != group.count:
        report.say(f"Processes: {progress.n_processes} until now, {group.count} from now on")
    progress.n_processes = group.count
    trainee = Trainee(run, group, out)
    report.say(trainee.describe())
    group.alike(trainee.load)
    if run.resumed:
        report.say(f"Resumed after step {progress.step:,} ({progress.words:,} words)")
    follower = group.alike(lambda: follow_in(given, run, group))
    keep_freed_memory()
    if group.is_first:  # from here on there is something to be written
        out.mkdir(parents=True, exist_ok=True)
        group.take(out)
        run.vocab.write(out / VOCAB)
        write_text(out / CONFIG, run.config.to_text())
        if not run.resumed:
            if run.table is not None:
                write_table(run.table, out / TABLE)
            trainee.write_checkpoint()
    with (
        follower as follow,
        start_log(out / LOG if group.is_first else None, run.log, follow) as log,
    ):
        with (
            matmul_precision(run.training.matmul_precision),
            report.steps(run.training.max_steps, progress.step),
            reading(run.corpus.batches(progress.place, group.share), group.device) as batches,
            stop_on_signals(report.quiet) as stopped,
        ):
            if estimates and not has_ended(progress, run.training):
                estimate, batches = rehearse(
                    trainee.learner,
                    batches,
                    trainee.sampler,
                    run.training.accumulate_gradient,
                    run.resumed,
                )
                left = run.training.max_steps - progress.step
                report.say(estimate.describe(left, run.in_epoch))
            take_steps(trainee, batches, report, log, stopped)
            trainee.warm_up()
            if group.is_first:
                trainee.write_checkpoint()
                trainee.write_model(LAST)
        if not has_ended(progress, run.training):
            report.say(f"Stopped after step {progress.step:,}; go on with --resume")
        else:
            progress.n_steps = progress.step
            if group.is_first:
                report.say(f"All {progress.step:,} steps are done; reading the whole dev text …")
                results = evaluate_models(out, run.dev, group.device)
                if progress.before is not None:
                    results = {"before": Perplexity(**progress.before), **results}
                for name, result in results.items():
                    log.write(step=progress.step, model=name, **asdict(result), mean=result.mean)
                report.say(table(results))
    group.wait()
    return progress


def take_steps(
    trainee: Trainee,
    batches: Iterator[tuple[Batch, CorpusPosition]],
    report: Report,
    log: Log,
    stopped: Callable[[], bool],
) -> None:
    """The steps of a run until it ends or is stopped, with what is logged and saved on the way.

    Args:
        trainee: what is trained.
        batches: of the text, this process's shares of them, each with its place.
        report: what the user is told by.
        log: what is logged to.
        stopped: whether the user wants the run to stop.
    """
    run, group = trainee.run, trainee.group
    progress, settings = run.progress, run.training
    n_parts = settings.accumulate_gradient
    if progress.step == 0 and progress.before is not None and not run.log:
        result = Perplexity(**progress.before)
        report.say(f"before: {describe(result)}")
        log.write(step=0, words=0, **entry(result))
    losses: list[torch.Tensor] = []
    shown_words, shown_seconds = progress.words, progress.seconds
    last_checkpoint = time.monotonic()
    while not has_ended(progress, settings) and not group.any(stopped()):
        started = time.monotonic()
        parts: list[Batch] = []
        while len(parts) < n_parts and not has_read(progress, settings):
            part, progress.place = next(batches)
            parts.append(part)
        rate = learning_rate(settings, progress.step)
        losses.append(trainee.step(parts, rate))
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
            result = trainee.evaluate()
            seconds = time.monotonic() - started
            progress.seconds += seconds
            shown_seconds += seconds
            report.say(f"step {progress.step:,}: {describe(result)}")
            log.write(step=progress.step, words=progress.words, **entry(result))
            if progress.best is None or result.mean < progress.best:
                progress.best = result.mean
                trainee.write_model(BEST)
        # There is never a model of a run without a checkpoint to resume it from.
        if evaluating or time.monotonic() - last_checkpoint > settings.checkpoint_seconds:
            trainee.write_checkpoint()
            last_checkpoint = time.monotonic()


def follow_in(
    given: Given, run: Prepared, group: Processes
) -> AbstractContextManager[Follow | None]:
    """A context in which the logger of the config is told the log, in the first process."""
    if given.follow is None or not group.is_first:
        return nullcontext()
    return given.follow(run.log)
