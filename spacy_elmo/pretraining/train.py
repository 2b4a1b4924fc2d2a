"""The training loop of a biLM, from top to bottom."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from pathlib import Path

import torch
from confection import Config

from ..lm.head import save_head
from ..lm.perplexity import Perplexity
from ..util.files import atomic_directory, locked, write_text
from ..util.progress import ProgressBar, say
from ..util.threads import threads_for, worker_count
from ..weights.layout import VOCAB, Card
from ..weights.native import save_bilm
from .checkpoint import CHECKPOINT, Progress, State, read_checkpoint
from .config import CONFIG, PretrainConfig
from .corpus import Batches
from .device import matmul_precision, save_memory_and_time
from .distributed import process_group
from .evaluation import describe, measure, write_results
from .log import LOG, Log
from .prepare import BEST, LAST, Run, check_new, prepare
from .schedule import has_ended, learning_rate, run_length
from .signals import stop_on_signals
from .train_step import train_step

N_AHEAD = 4  # threads that prepare batches for a GPU
N_STEPS, N_FIRST = 24, 8  # steps that are timed for `minutes`; without the first, slower ones


def pretrain(
    config: PretrainConfig,
    out: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    quiet: bool = False,
) -> Progress:
    """Train a biLM. Ctrl-C ends the run after the current step, and nothing is lost.

    If torchrun has started several processes, they train one biLM together.

    Args:
        config: the settings.
        out: the directory for ``model-best``, ``model-last``, checkpoint, config and log.
        device: where PyTorch computes, ``"cpu"`` or ``"cuda:0"``; see `process_group`.
        resume: start from the checkpoint in ``out``, or from the beginning if it has none.
        quiet: print nothing.

    Returns:
        How far the run has come.

    Raises:
        ValueError: a setting, a path or a checkpoint is wrong, or another process trains in
            ``out``: nothing has been written. Or a file of the text cannot be read any more, or
            the loss is not finite: the last checkpoint and models are still there.
    """
    save_memory_and_time()
    n_threads = worker_count(most=os.cpu_count() or 1)
    with (
        process_group(device) as group,
        threads_for(0, n_threads, most=n_threads),
        ExitStack() as stack,
    ):
        quiet = quiet or group.rank > 0
        is_resumed = resume and (out / CHECKPOINT).exists()
        if not is_resumed:
            check_new(out, resume)
        elif group.rank == 0:  # which writes for all
            lock(out, stack)
        run, state = prepare(config, out, group, is_resumed, (lambda text: None) if quiet else say)
        group.barrier()  # all have read what is there
        progress = state.progress
        bilm, head = (sum(p.numel() for p in m.parameters()) for m in (state.model, state.head))
        run.notify(
            f"{bilm / 1e6:.1f} M parameters, head: {head / 1e6:.1f} M; {group.device}, processes: "
            f"{group.world_size}, threads: {max(len(state.modules), torch.get_num_threads())}"
        )
        if is_resumed:
            run.notify(f"Resumed after step {progress.step:,} ({progress.words:,} words)")
        with matmul_precision(config.training.matmul_precision):
            if group.rank == 0:
                write_start(run, state, is_resumed, stack)
            log = Log(out / LOG if group.rank == 0 else None, progress.step)
            # While a GPU computes, CPUs have time; but a teacher may not bear several threads.
            n_threads = N_AHEAD if group.device.type == "cuda" and not run.corpus.teacher else 1
            batches = run.corpus.batches(progress.position, state.shares(), n_threads)
            with closing(batches), stop_on_signals(quiet) as stopped:
                take_steps(run, state, batches, log, stopped, quiet)
                progress.is_finished = has_ended(run.config.training, progress)
                if group.rank == 0:
                    write_checkpoint(run, state)
                    write_model(run, state, LAST)
        if not progress.is_finished:
            models = LAST if progress.best is None else f"{BEST} and {LAST}"
            run.notify(
                f"Stopped after step {progress.step:,}; resume with --resume. '{out}' has {models}"
            )
        elif group.rank == 0:
            run.notify(f"Finished {progress.step:,} steps; evaluating on the dev text …")
            write_results(run, state, log)
    return progress


def take_steps(
    run: Run, state: State, batches: Batches, log: Log, stopped: Callable[[], bool], quiet: bool
) -> None:
    """Take steps until the run ends or the user stops it; log, evaluate and save.

    Args:
        run: what does not change.
        state: what is trained.
        batches: this process's part of the batches, each with the position after it.
        log: the log of the run.
        stopped: tells if the user has stopped the run.
        quiet: show no progress bar.
    """
    progress, group, settings = state.progress, state.group, run.config.training
    began = time.monotonic() - progress.seconds

    def counters() -> dict[str, float]:
        """How far the run is, for an entry of its log."""
        progress.seconds = time.monotonic() - began
        epoch, seconds = progress.position.epoch, progress.seconds
        return {"step": progress.step, "words": progress.words, "epoch": epoch, "seconds": seconds}

    def evaluate(title: str) -> Perplexity:
        result = measure(state.model, state.head, run.dev, settings.eval_words)
        check_finite(run, state, result.mean)
        log.write(**counters(), **asdict(result), mean=result.mean)
        run.notify(f"{title}: {describe(result)}")
        return result

    if progress.step == 0 and run.config.paths.weights is not None and group.rank == 0:
        evaluate("before")
    losses: list[torch.Tensor] = []  # on the device until they are logged
    timed: list[float] = []  # seconds of the first steps
    last_checkpoint = time.monotonic()
    is_last = has_ended(settings, progress)
    with ProgressBar("steps", run_length(settings, progress), progress.step, quiet) as bar:
        while not is_last and not group.sum(stopped()):
            start = time.monotonic()
            batch, progress.position = next(batches)
            rate = learning_rate(settings, progress)
            losses.append(train_step(state, settings, batch, rate))
            if settings.minutes and not progress.step_seconds:
                float(losses[-1])  # waits for a GPU
                timed.append(time.monotonic() - start)
                if len(timed) == N_STEPS:
                    fit_to_minutes(run, state, timed)
                    bar.set_total(run_length(settings, progress))
            progress.seconds = time.monotonic() - began
            is_last = has_ended(settings, progress)
            if progress.step % settings.log_every == 0 or is_last:
                loss = group.sum(float(torch.stack(losses).mean()))
                losses.clear()
                if group.rank == 0:
                    check_finite(run, state, loss)
                log.write(**counters(), loss=loss, lr=rate)
                speed = progress.words / progress.seconds
                bar.set_postfix_str(f"loss {loss:.3f}, {speed:,.0f} words/s", refresh=False)
            bar.update()
            if group.rank > 0:
                continue  # to the next step, in which all wait for the first
            is_evaluation = progress.step % settings.eval_every == 0 or is_last
            if is_evaluation:
                result = evaluate(f"step {progress.step:,}")
                if progress.best is None or result.mean < progress.best:
                    progress.best = result.mean
                    write_model(run, state, BEST)
            # There is never a model of a run without a checkpoint to resume it from.
            if is_evaluation or time.monotonic() - last_checkpoint > settings.checkpoint_seconds:
                write_checkpoint(run, state)
                last_checkpoint = time.monotonic()


def fit_to_minutes(run: Run, state: State, seconds: list[float]) -> None:
    """Note how long a step takes, which decides the length of a run of some minutes.

    Args:
        run: the run.
        state: its state.
        seconds: how long each of the first steps took.
    """
    settings, progress, group = run.config.training, state.progress, state.group
    mean = sum(seconds[N_FIRST:]) / len(seconds[N_FIRST:])
    progress.step_seconds = group.sum(mean) / group.world_size  # the same in all processes
    n_steps = max(progress.step, run_length(settings, progress))
    progress.head_first = min(progress.head_first, n_steps // 2)
    run.notify(
        f"{n_steps:,} steps, since one takes {progress.step_seconds:.2f} s and the run has "
        f"{settings.minutes:g} minutes"
    )


def lock(out: Path, stack: ExitStack) -> None:
    """Lock the directory of a run that has begun, until the stack ends.

    Raises:
        ValueError: another process has locked it.
    """
    if stack.enter_context(locked(out / VOCAB, wait=False)) is False:
        raise ValueError(
            f"Another process trains in '{out}': wait for it, stop it, or choose another directory."
        )


def write_start(run: Run, state: State, is_resumed: bool, stack: ExitStack) -> None:
    """Write vocabulary, config and first checkpoint of a run; nothing is written before.

    Args:
        run: the run.
        state: its state.
        is_resumed: whether it resumes from a checkpoint, and has a lock.
        stack: holds the lock.
    """
    if not is_resumed:
        run.out.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (run.out / VOCAB).touch(exist_ok=False)  # not through a link
        lock(run.out, stack)
        check_new(run.out, resume=True)  # another run may have begun meanwhile
        # In place: this file is locked.
        (run.out / VOCAB).write_bytes("\n".join([*run.vocab.words, ""]).encode("utf-8"))
    write_text(run.out / CONFIG, Config(run.config.to_dict()).to_str() + "\n")
    if not is_resumed:
        write_checkpoint(run, state)


def write_model(run: Run, state: State, name: str) -> None:
    """Write the biLM and its head to a directory of the run, whole or not at all."""
    with atomic_directory(run.out / name) as directory:
        save_bilm(state.model, directory, Card(**state.progress.card))
        save_head(state.head, run.vocab, directory)


def write_checkpoint(run: Run, state: State) -> None:
    """Write all that the run needs to resume.

    Raises:
        ValueError: a weight is not finite; the last checkpoint stays as it is.
    """
    check_finite(run, state)
    state.save(run.out / CHECKPOINT, run.config)


def check_finite(run: Run, state: State, loss: float = 0.0) -> None:
    """Check that a loss and all weights are finite.

    Raises:
        ValueError: one is not; the message names the last checkpoint.
    """
    if abs(loss) < float("inf") and state.is_finite():
        return
    progress, out = state.progress, run.out
    saved, _ = read_checkpoint(out / CHECKPOINT)
    text = (
        f"The loss or a weight is not finite at step {progress.step:,}. Resume from the checkpoint "
        f"of step {saved.step:,} with --resume and a lower --training.learning_rate"
    )
    if progress.best is not None:
        # By then the loss may have been growing already, which no weight shows.
        text += f"; if that diverges too, start a new run --from '{out / BEST}'"
    raise ValueError(f"{text}.")
