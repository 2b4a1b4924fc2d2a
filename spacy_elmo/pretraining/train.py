"""The training loop of a biLM: read it from top to bottom."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from confection import Config

from ..bilm.model import BiLM
from ..bilm.sentence_batches import IndexedSentences
from ..lm.encoded_sentences import EncodedSentences
from ..lm.head import load_head, save_head
from ..lm.perplexity import Perplexity, evaluate
from ..lm.softmax import SoftmaxHead
from ..util.files import atomic_directory, locked, write_bytes, write_text
from ..util.progress import ProgressBar
from ..util.threads import steady_threads, threads_for
from ..weights.find import load_bilm
from ..weights.layout import STATISTICS, VOCAB, Card
from ..weights.native import save_bilm
from ..weights.statistics import compute_statistics
from . import minutes
from .checkpoint import CHECKPOINT, Progress, State, read_checkpoint
from .config import CONFIG, PretrainConfig
from .corpus import Batches
from .device import matmul_precision, save_memory_and_time
from .distributed import ProcessGroup, process_group
from .log import LOG, Console, Log
from .prepare import BEST, LAST, Run, check_new, prepare
from .signals import stop_on_signals
from .train_step import train_step

BATCH_WORDS, N_BATCHES = 4096, 8  # of an evaluation, at most; of a part of the text, at least
N_AHEAD = 4  # threads that make batches for a GPU
# Whatever the precision in training: evaluations are compared.
at_the_highest_precision = matmul_precision("highest")


def pretrain(
    config: PretrainConfig,
    out: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    quiet: bool = False,
) -> Progress:
    """Train a biLM; Ctrl-C ends it after the current step, and nothing is lost.

    Where torchrun has started several processes, they train it together.

    Args:
        config: all settings.
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
    save_memory_and_time()
    n_threads = steady_threads(most=os.cpu_count() or 1)
    with process_group(device) as group, threads_for(0, n_threads, most=n_threads):
        return train(config, out, group, resume, Console(quiet or not group.is_first))


def train(
    config: PretrainConfig, out: Path, group: ProcessGroup, resume: bool, console: Console
) -> Progress:
    """`pretrain`, in a group of processes: what holds the group is gone when it returns."""
    with ExitStack() as stack:
        is_resumed = resume and (out / CHECKPOINT).exists()
        if not is_resumed:
            check_new(out, resume)
        elif group.is_first:  # it writes and reports for all
            lock(out, stack)
        run, state = prepare(config, out, group, is_resumed, console.print)
        group.barrier()  # all have read what is there
        progress = state.progress
        console.print(describe(state))
        if is_resumed:
            console.print(f"Resumed after step {progress.step:,} ({progress.words:,} words)")
        with matmul_precision(run.config.training.matmul_precision):
            if run.config.training.minutes and not is_resumed:
                run = minutes.fit(run, state, partial(measure, run), console.print)
            if group.is_first:
                write_start(run, state, is_resumed, stack)
            log = Log(out / LOG if group.is_first else None, progress.step)
            # A GPU leaves time for the next ones; a teacher need not bear several threads.
            n_threads = N_AHEAD if group.device.type == "cuda" and not run.corpus.teacher else 1
            batches = run.corpus.batches(progress.position, state.shares(), n_threads)
            with closing(batches), stop_on_signals(console.quiet) as stopped:
                take_steps(run, state, batches, console, log, stopped)
                progress.is_finished = run.schedule.has_ended(progress)
                if group.is_first:
                    write_checkpoint(run, state)
                    write_model(run, state, LAST)
        if progress.is_finished:
            if group.is_first:
                console.print(f"Finished {progress.step:,} steps; evaluating on the dev text …")
                write_results(run, state, console, log)
        else:
            models = LAST if progress.best is None else f"{BEST} and {LAST}"
            console.print(
                f"Stopped after step {progress.step:,}; resume with --resume. '{out}' has {models}"
            )
    group.barrier()
    return progress


def take_steps(
    run: Run,
    state: State,
    batches: Batches,
    console: Console,
    log: Log,
    stopped: Callable[[], bool],
) -> None:
    """The steps of a run until it ends or is stopped, with all that is logged and saved.

    Args:
        run: what does not change.
        state: what is trained.
        batches: this rank's shares of the batches, each with the position after it.
        console: prints.
        log: of the run.
        stopped: whether the user has stopped the run.
    """
    progress, group = state.progress, state.group
    settings, schedule = run.config.training, run.schedule
    began = time.monotonic() - progress.seconds

    def report(title: str, result: Perplexity) -> None:
        progress.seconds = time.monotonic() - began
        console.print(f"{title}: {describe_result(result)}")
        log.write(**where(progress), **asdict(result), mean=result.mean)

    if progress.step == 0 and run.config.paths.weights is not None and group.is_first:
        report("before", measure(run, state, settings.eval_words))
    losses: list[torch.Tensor] = []  # on the device until they are logged
    last_checkpoint = time.monotonic()
    with ProgressBar("steps", schedule.n_steps, progress.step, console.quiet) as console.bar:
        while not schedule.has_ended(progress) and not group.sum(stopped()):
            shares, progress.position = next(batches)
            rate = schedule.learning_rate(progress.step)
            losses.append(train_step(state, shares, rate))
            progress.seconds = time.monotonic() - began
            is_last = schedule.has_ended(progress)
            if progress.step % settings.log_every == 0 or is_last:
                loss = group.sum(float(torch.stack(losses).mean()))
                losses.clear()
                if group.is_first:
                    check_finite(run, state, loss)
                speed = progress.words / progress.seconds
                console.bar.set_postfix_str(f"loss {loss:.3f}, {speed:,.0f} words/s", refresh=False)
                log.write(**where(progress), loss=loss, lr=rate)
            console.bar.update()
            if not group.is_first:
                continue  # to the next step, which waits for the first rank
            is_evaluation = progress.step % settings.eval_every == 0 or is_last
            if is_evaluation:
                result = measure(run, state, settings.eval_words)
                check_finite(run, state, result.mean)
                report(f"step {progress.step:,}", result)
                if progress.best is None or result.mean < progress.best:
                    progress.best = result.mean
                    write_model(run, state, BEST)
            # There is never a model of a run without a checkpoint to resume it from.
            if is_evaluation or time.monotonic() - last_checkpoint > settings.checkpoint_seconds:
                write_checkpoint(run, state)
                last_checkpoint = time.monotonic()


def where(progress: Progress) -> dict[str, float]:
    """How far a run is, for an entry of its log."""
    epoch, seconds = progress.position.epoch, progress.seconds
    return {"step": progress.step, "words": progress.words, "epoch": epoch, "seconds": seconds}


def describe(state: State) -> str:
    """One line: the sizes, and where they are trained."""
    bilm, head = (sum(p.numel() for p in m.parameters()) / 1e6 for m in (state.model, state.head))
    return (
        f"{bilm:.1f} M parameters, head: {head:.1f} M; {state.group.device}, processes: "
        f"{state.group.world_size}, threads: {max(state.n_threads, torch.get_num_threads())}"
    )


def describe_result(result: Perplexity) -> str:
    """One line on an evaluation."""
    return (
        f"perplexity {result.mean:.2f} (forward {result.forward:.2f}, backward "
        f"{result.backward:.2f}), {result.n_words:,} words, {result.unknown_rate:.2%} <UNK>"
    )


# What a run evaluates


@at_the_highest_precision
def measure(run: Run, state: State, max_words: int) -> Perplexity:
    """Perplexity on the held-out text, or on about so many words of it, if that is not 0."""
    return evaluate_part(state.model, state.head, run.dev, max_words)


def evaluate_part(
    model: BiLM, head: SoftmaxHead, text: EncodedSentences, max_words: int
) -> Perplexity:
    """`evaluate`, with batches so small that few words, too, are of sentences short and long."""
    batch_words = min(BATCH_WORDS, max_words // N_BATCHES) or BATCH_WORDS
    return evaluate(model, head, text, batch_words, max_words)


@at_the_highest_precision
def write_results(run: Run, state: State, console: Console, log: Log) -> None:
    """Evaluate the models of a finished run on the whole held-out text, as they are on disk, or on
    the part of it that a run of some minutes has time for; add statistics of the text to them,
    unless it has one distinct word only."""
    max_words = state.progress.final_words
    text: IndexedSentences = run.dev
    if max_words:
        step = -(-len(run.dev.tokens) // max_words)
        text = IndexedSentences(run.dev.words(np.arange(0, len(run.dev.lengths), step)))
    for path in filter(Path.exists, (run.out / BEST, run.out / LAST)):
        device = state.group.device
        model, (head, _) = load_bilm(path).to(device), load_head(path)
        result = evaluate_part(model, head.to(device), run.dev, max_words)
        if statistics := compute_statistics(model, text):
            write_bytes(path / STATISTICS, statistics.to_bytes())
        log.write(step=state.progress.step, model=path.name, **asdict(result), mean=result.mean)
        console.print(f"{path.name}: {describe_result(result)}")


# What a run writes


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
    """Write what a run has at its start; nothing is written before.

    Args:
        run, state: of it.
        is_resumed: from a checkpoint.
        stack: holds the lock.
    """
    if not is_resumed:
        run.out.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (run.out / VOCAB).touch(exist_ok=False)  # not through a link
        lock(run.out, stack)
        check_new(run.out, resume=True)  # another run may have begun meanwhile
        # In place: the lock is of this file.
        (run.out / VOCAB).write_bytes("\n".join([*run.vocab.words, ""]).encode("utf-8"))
    # Of a run of some minutes, the steps that were fitted to them.
    training = replace(run.config.training, minutes=0.0)
    config = Config(replace(run.config, training=training).to_dict())
    write_text(run.out / CONFIG, config.to_str() + "\n")
    if not is_resumed:
        write_checkpoint(run, state)


def write_model(run: Run, state: State, name: str) -> None:
    """Write the weights, which are finite, to a directory of the run, whole or not at all."""
    with atomic_directory(run.out / name) as directory:
        save_bilm(state.model, directory, Card(**state.progress.card))
        save_head(state.head, run.vocab, directory)


def write_checkpoint(run: Run, state: State) -> None:
    """Write all that the run needs to be resumed.

    Raises:
        ValueError: a weight is not finite; the last checkpoint stays as it is.
    """
    check_finite(run, state)
    state.save(run.out / CHECKPOINT, run.config)


def check_finite(run: Run, state: State, loss: float = 0.0) -> None:
    """Check a loss, and all weights.

    Raises:
        ValueError: one is infinite or NaN; the message names what is from before it.
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
