"""The training loop of a biLM: read it from top to bottom."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import asdict
from pathlib import Path

import torch

from ..lm.encoded_sentences import SentenceBatch
from ..lm.perplexity import Perplexity
from ..util.files import locked
from ..util.threads import steady_threads, threads
from ..weights.layout import VOCAB
from .config import PretrainConfig
from .data.corpus import Batches, pinned, read_ahead
from .run import machine
from .run.checkpoint import BEST, CHECKPOINT, LAST, TrainingProgress, read_progress
from .run.distributed import ProcessGroup, process_group
from .run.log import ESTIMATE_STEPS, LOG, Console, Follow, Log, describe_cost
from .run.prepare_run import check_new, ended_before_checkpoint, prepare_run
from .run.train_state import RunState
from .train_step import train_step


def pretrain(
    config: PretrainConfig | Callable[[Path | None], PretrainConfig],
    out: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    quiet: bool = False,
) -> TrainingProgress:
    """Train a biLM; Ctrl-C ends it after the current step, and nothing is lost.

    Where torchrun has started several processes, they train it together; if it restarts them,
    because one was lost, they resume from the last checkpoint.

    Args:
        config: all settings, or a function that reads them, given the directory of the run if it
            is resumed from a checkpoint: an error in it then ends all processes together.
        out: directory for ``model-best``, ``model-last``, the checkpoint, the config and the log.
        device: where PyTorch computes, ``"cpu"`` or ``"cuda:0"``; see `process_group`.
        resume: from the checkpoint in ``out``, or from the beginning if there is none yet.
        quiet: print nothing.

    Returns:
        How far the run has come.

    Raises:
        ValueError: a setting, a path or a checkpoint is wrong, or another process trains in
            ``out`` (nothing has been written then); or a shard can no longer be read, or the loss
            is not finite (the last checkpoint and the models stay as they were).
    """
    machine.limit_kernel_cache()
    n_threads = steady_threads(most=os.cpu_count() or 1)
    with process_group(device) as group, threads(n_threads), ExitStack() as stack:
        return train(config, out, group, resume, quiet, stack)


def train(
    config: PretrainConfig | Callable[[Path | None], PretrainConfig],
    out: Path,
    group: ProcessGroup,
    resume: bool,
    quiet: bool,
    stack: ExitStack,
) -> TrainingProgress:
    """`pretrain`, in a group of processes: what holds the group is gone when it returns."""
    console = Console(quiet or not group.is_first)

    def prepare() -> tuple[RunState, AbstractContextManager[Follow | None]]:
        resumed = out if resume and (out / CHECKPOINT).exists() else None
        settings = config(resumed) if callable(config) else config
        run, progress = prepare_run(settings, out, group, resume, console.print)
        state = RunState(run, group, progress)
        console.print(state.describe())
        state.load(console.print)
        block = state.settings.logger
        if block is None or not group.is_first:
            return state, nullcontext()
        make_logger = run.config.make("training.logger", block, console.print)
        return state, make_logger(run.config, run.log)

    state, logger = group.run_on_all_ranks(prepare)
    run, progress = state.run, state.progress
    if run.resumed:
        console.print(f"Resumed after step {progress.step:,} ({progress.words:,} words)")
    machine.keep_freed_memory()

    def start() -> None:
        if not group.is_first:
            return
        if not run.resumed:  # nothing is written before this
            if not ended_before_checkpoint(out):  # another run may have begun meanwhile
                check_new(out)
            state.start_files()
        if stack.enter_context(locked(out / VOCAB, wait=False)) is False:
            raise ValueError(
                f"Another process trains in '{out}': wait for it, stop it, or choose another "
                f"directory."
            )
        if run.resumed:
            if read_progress(out / CHECKPOINT)[0].step != progress.step:
                raise ValueError(f"'{out}' has been trained further meanwhile: resume it again.")
            state.start_files()

    group.run_on_all_ranks(start)
    batches = run.corpus.batches(progress.position, state.shares())
    if group.device.type == "cuda":
        batches = read_ahead(pinned(batches, group.device))
    with logger as follow:
        log = Log(out / LOG if group.is_first else None, run.log, follow)
        with (
            machine.matmul_precision(state.settings.matmul_precision),
            console.steps(run.schedule.n_steps, progress.step),
            closing(batches),
            machine.stop_on_signals(console.quiet) as stopped,
        ):
            take_steps(state, batches, console, log, stopped)
            if group.is_first:
                state.update_warm_state()
                state.write_checkpoint()
                state.write_model(LAST)
        if not run.schedule.has_ended(progress):
            console.print(f"Stopped after step {progress.step:,}; resume with --resume")
        else:
            progress.n_steps = progress.step
            if group.is_first:
                console.print(f"Finished {progress.step:,} steps; evaluating on the dev text …")
                write_results(state, console, log)
    group.barrier()
    return progress


def take_steps(
    state: RunState,
    batches: Batches,
    console: Console,
    log: Log,
    stopped: Callable[[], bool],
) -> None:
    """The steps of a run until it ends or is stopped, with all that is logged and saved.

    Args:
        state: what is trained.
        batches: this rank's shares of the batches, each with the position after it.
        console: prints.
        log: of the run.
        stopped: whether the user has stopped the run.
    """
    progress, group = state.progress, state.group
    settings, schedule = state.settings, state.run.schedule
    if progress.step == 0 and progress.before is not None and not state.run.log:
        # Beside the evaluations to come, and so on the same part of the text.
        before = state.evaluate() if settings.eval_words else Perplexity(**progress.before)
        report("before", before, progress, console, log)
        log.end_step()
    losses: list[torch.Tensor] = []  # on the device until they are printed
    first_seconds: list[float] = []
    n_steps = schedule.n_steps - progress.step
    shown_words, shown_seconds = progress.words, progress.seconds
    last_checkpoint = time.monotonic()
    while not schedule.has_ended(progress) and not group.sum(stopped()):
        started = time.monotonic()
        parts: list[SentenceBatch] = []
        for _ in range(settings.accumulate_gradient):
            if not schedule.has_read_all(progress):
                shares, progress.position = next(batches)
                parts += shares
        rate = schedule.learning_rate(progress.step)
        losses.append(train_step(state, parts, rate))
        if len(first_seconds) < ESTIMATE_STEPS:
            losses[-1].item()  # waits for the GPU
            first_seconds.append(time.monotonic() - started)
            if len(first_seconds) == ESTIMATE_STEPS:
                memory = machine.peak_memory(group.device)
                console.print(describe_cost(first_seconds, memory, n_steps, schedule.epoch_steps))
        progress.seconds += time.monotonic() - started
        console.step()
        is_last = schedule.has_ended(progress)
        if progress.step % settings.log_every == 0 or is_last:
            loss = group.sum(float(torch.stack(losses).mean()))
            losses.clear()
            if group.is_first:  # it reports for all
                state.check_finite([torch.tensor(loss)])
            seconds = max(progress.seconds - shown_seconds, 1e-9)
            console.show(progress.step, loss, (progress.words - shown_words) / seconds)
            shown_words, shown_seconds = progress.words, progress.seconds
            log.write(
                step=progress.step,
                words=progress.words,
                loss=loss,
                lr=rate,
                seconds=progress.seconds,
                epoch=progress.position.epoch,
            )
        if not group.is_first:
            continue  # to the next step, which waits for the first rank
        is_evaluation = progress.step % settings.eval_every == 0 or is_last
        if is_evaluation:
            started = time.monotonic()
            result = state.evaluate()
            seconds = time.monotonic() - started
            progress.seconds += seconds
            shown_seconds += seconds
            report(f"step {progress.step:,}", result, progress, console, log)
            if progress.best is None or result.mean < progress.best:
                progress.best = result.mean
                state.write_model(BEST)
        # There is never a model of a run without a checkpoint to resume it from.
        if is_evaluation or time.monotonic() - last_checkpoint > settings.checkpoint_seconds:
            state.write_checkpoint()
            last_checkpoint = time.monotonic()
        log.end_step()


def write_results(state: RunState, console: Console, log: Log) -> None:
    """Evaluate the models of a finished run, and print a table."""
    results = state.evaluate_models()
    if state.progress.before is not None:
        results = {"before": Perplexity(**state.progress.before), **results}
    titles = ("forward", "backward", "mean", "words", "<UNK>")
    lines = ["{:<12}{:>10}{:>10}{:>10}{:>12}{:>8}".format("perplexity", *titles)]
    for name, result in results.items():
        log.write(step=state.progress.step, model=name, **asdict(result), mean=result.mean)
        lines.append(
            f"{name:<12}{result.forward:>10.2f}{result.backward:>10.2f}{result.mean:>10.2f}"
            f"{result.n_predicted:>12,}{result.unknown_rate:>8.2%}"
        )
    console.print("\n".join(lines))


def report(
    title: str, result: Perplexity, progress: TrainingProgress, console: Console, log: Log
) -> None:
    """Print a perplexity on the dev text in one line, and log it."""
    forward, backward, mean = result.forward, result.backward, result.mean
    console.print(
        f"{title}: perplexity {mean:.1f} (forward {forward:.1f}, backward {backward:.1f}), "
        f"{result.unknown_rate:.2%} <UNK>"
    )
    numbers = {"forward": forward, "backward": backward, "mean": mean}
    log.write(step=progress.step, words=progress.words, **numbers)
