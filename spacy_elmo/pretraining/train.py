"""The training loop of a biLM: read it from top to bottom."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict
from pathlib import Path

import torch
from confection import Config

from ..lm.head import load_head, save_head
from ..lm.perplexity import Perplexity, evaluate
from ..util.files import atomic_directory, locked, write_bytes, write_text
from ..util.progress import ProgressBar
from ..util.threads import steady_threads, threads
from ..weights.find import load_bilm
from ..weights.layout import STATISTICS, VOCAB, Card
from ..weights.native import save_bilm
from ..weights.statistics import compute_statistics, has_two_words
from . import machine
from .config import CONFIG, PretrainConfig
from .corpus import Batches, pinned, read_ahead
from .distributed import ProcessGroup, process_group
from .log import LOG, Console, Log, LogStep, open_logger
from .prepare import BEST, LAST, Run, check_new, prepare
from .state import CHECKPOINT, EARLIER, Progress, State, keep_latest, read_checkpoint
from .train_step import train_step

# Whatever the precision in training: evaluations are compared.
at_the_highest_precision = machine.matmul_precision("highest")


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
    machine.limit_kernel_cache()
    n_threads = steady_threads(most=os.cpu_count() or 1)
    with process_group(device) as group, threads(n_threads):
        return train(config, out, group, resume, Console(quiet or not group.is_first))


def train(
    config: PretrainConfig, out: Path, group: ProcessGroup, resume: bool, console: Console
) -> Progress:
    """`pretrain`, in a group of processes: what holds the group is gone when it returns."""
    with ExitStack() as stack:

        def get_ready() -> tuple[Run, State, LogStep]:
            is_resumed = resume and (out / CHECKPOINT).exists()
            if not is_resumed:
                check_new(out, resume)
            elif group.is_first:
                lock(out, stack)
            run, state = prepare(config, out, group, is_resumed, console.print)
            logger = open_logger(run.config) if group.is_first else nullcontext(lambda info: None)
            return run, state, stack.enter_context(logger)

        def begin() -> None:
            if group.is_first:  # it writes for all
                write_start(run, state, resume, stack)

        run, state, log_step = group.run_on_all_ranks(get_ready)
        progress, settings = state.progress, run.config.training
        console.print(describe(state))
        if run.is_resumed:
            console.print(f"Resumed after step {progress.step:,} ({progress.words:,} words)")
        machine.keep_freed_memory()
        group.run_on_all_ranks(begin)
        log = Log(out / LOG if group.is_first else None, run.log)
        batches = run.corpus.batches(progress.position, state.shares())
        if group.device.type == "cuda":
            batches = read_ahead(pinned(batches, group.device))
        with (
            machine.matmul_precision(settings.matmul_precision),
            closing(batches),
            machine.stop_on_signals(console.quiet) as stopped,
        ):
            take_steps(run, state, batches, console, log, log_step, stopped)
            if group.is_first:
                write_checkpoint(run, state)
                write_model(run, state, LAST)
        if not run.schedule.has_ended(progress):
            console.print(f"Stopped after step {progress.step:,}; resume with --resume")
        else:
            progress.n_steps = progress.step
            if group.is_first:
                console.print(f"Finished {progress.step:,} steps; evaluating on the dev text …")
                write_results(run, state, console, log)
    group.barrier()
    return progress


def take_steps(
    run: Run,
    state: State,
    batches: Batches,
    console: Console,
    log: Log,
    log_step: LogStep,
    stopped: Callable[[], bool],
) -> None:
    """The steps of a run until it ends or is stopped, with all that is logged and saved.

    Args:
        run: what does not change.
        state: what is trained.
        batches: this rank's shares of the batches, each with the position after it.
        console: prints.
        log: of the run.
        log_step: a logger of spaCy's.
        stopped: whether the user has stopped the run.
    """
    progress, group = state.progress, state.group
    settings, schedule = run.config.training, run.schedule
    began = time.monotonic() - progress.seconds

    def report(title: str, result: Perplexity) -> None:
        progress.seconds = time.monotonic() - began
        numbers = {"forward": result.forward, "backward": result.backward, "mean": result.mean}
        console.print(
            f"{title}: perplexity {result.mean:.1f} (forward {result.forward:.1f}, backward "
            f"{result.backward:.1f}), {result.unknown_rate:.2%} <UNK>"
        )
        log.write(**where(progress), **numbers)
        log_step(log.last_evaluation())

    if progress.step == 0 and progress.is_adapted and group.is_first and not log.entries:
        report("before", measure(run, state))
    losses: list[torch.Tensor] = []  # on the device until they are logged
    shown_words, shown = progress.words, time.monotonic()
    last_checkpoint = time.monotonic()
    with ProgressBar("steps", schedule.n_steps, progress.step, console.quiet) as console.bar:
        while not schedule.has_ended(progress) and not group.sum(stopped()):
            parts = []
            for _ in range(settings.accumulate_gradient):
                if not schedule.has_read_all(progress):
                    shares, progress.position = next(batches)
                    parts += shares
            rate = schedule.learning_rate(progress.step)
            losses.append(train_step(state, parts, rate))
            progress.seconds = time.monotonic() - began
            is_last = schedule.has_ended(progress)
            if progress.step % settings.log_every == 0 or is_last:
                loss = group.sum(float(torch.stack(losses).mean()))
                losses.clear()
                if group.is_first:  # it reports for all
                    check_finite(run, state, loss)
                speed = (progress.words - shown_words) / max(time.monotonic() - shown, 1e-9)
                shown_words, shown = progress.words, time.monotonic()
                console.bar.set_postfix_str(f"loss {loss:.3f}, {speed:,.0f} words/s", refresh=False)
                log.write(**where(progress), loss=loss, lr=rate)
            console.bar.update()
            if not group.is_first:
                continue  # to the next step, which waits for the first rank
            is_evaluation = progress.step % settings.eval_every == 0 or is_last
            if is_evaluation:
                result = measure(run, state)
                check_finite(run, state, result.mean)
                report(f"step {progress.step:,}", result)
                shown_words, shown = progress.words, time.monotonic()
                if progress.best is None or result.mean < progress.best:
                    progress.best, progress.best_step = result.mean, progress.step
                    write_model(run, state, BEST)
            else:
                log_step(None)
            # There is never a model of a run without a checkpoint to resume it from.
            if is_evaluation or time.monotonic() - last_checkpoint > settings.checkpoint_seconds:
                write_checkpoint(run, state)
                last_checkpoint = time.monotonic()


def where(progress: Progress) -> dict[str, float]:
    """How far a run is, for an entry of its log."""
    epoch = progress.position.epoch
    numbers = {"step": progress.step, "words": progress.words, "epoch": epoch}
    return {**numbers, "seconds": progress.seconds}


def describe(state: State) -> str:
    """One line: the sizes, and where they are trained."""
    bilm, head = (sum(p.numel() for p in m.parameters()) / 1e6 for m in (state.model, state.head))
    group, sampler, text = state.group, state.sampler, ""
    if sampler is not None:
        text += f", {sampler.n_candidates:,} candidates of {sampler.n_words:,} words"
    text += f"; {group.device}"
    if group.world_size > 1:
        text += f", {group.world_size} processes"
    if group.device.type == "cpu":
        n_threads = state.n_threads if state.n_threads > 1 else torch.get_num_threads()
        text += f", {n_threads} thread{'s' if n_threads > 1 else ''}"
    return f"{bilm:.1f} M parameters, head: {head:.1f} M{text}"


# What a run evaluates


@at_the_highest_precision
def measure(run: Run, state: State) -> Perplexity:
    """Perplexity on the held-out text, or on the part of it that the settings name.

    Raises:
        ValueError: a weight is not finite.
    """
    check_finite(run, state)
    return evaluate(state.model, state.head, run.dev, max_words=run.config.training.eval_words)


@at_the_highest_precision
def write_results(run: Run, state: State, console: Console, log: Log) -> None:
    """Evaluate the models of a finished run on the whole held-out text, as they are on disk, and
    print a table; add statistics of the text to them, unless it has one distinct word only."""
    results: dict[str, Perplexity] = {}
    for path in filter(Path.exists, (run.out / BEST, run.out / LAST)):
        device = state.group.device
        model, (head, _) = load_bilm(path).to(device), load_head(path)
        results[path.name] = evaluate(model, head.to(device), run.dev)
        if has_two_words(run.dev):
            write_bytes(path / STATISTICS, compute_statistics(model, run.dev).to_bytes())
    titles = ("forward", "backward", "mean", "words", "<UNK>")
    lines = ["{:<12}{:>10}{:>10}{:>10}{:>12}{:>8}".format("perplexity", *titles)]
    for name, result in results.items():
        log.write(step=state.progress.step, model=name, **asdict(result), mean=result.mean)
        lines.append(
            f"{name:<12}{result.forward:>10.2f}{result.backward:>10.2f}{result.mean:>10.2f}"
            f"{result.n_predicted:>12,}{result.unknown_rate:>8.2%}"
        )
    console.print("\n".join(lines))


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


def write_start(run: Run, state: State, resume: bool, stack: ExitStack) -> None:
    """Write what a run has at its start; nothing is written before.

    Args:
        run, state: of it.
        resume: see `check_new`.
        stack: holds the lock.
    """
    out, progress = run.out, state.progress
    if not run.is_resumed:
        check_new(out, resume)  # another run may have begun meanwhile
        out.mkdir(parents=True, exist_ok=True)
        run.vocab.write(out / VOCAB)
        lock(out, stack)
    write_text(out / CONFIG, Config(run.config.to_dict()).to_str() + "\n")
    if not run.is_resumed:
        write_checkpoint(run, state)
    elif progress.step:  # the process may have been killed before it had copied it
        keep_latest(out / CHECKPOINT, progress.step, run.config.training.keep_checkpoints)


def write_model(run: Run, state: State, name: str) -> None:
    """Write the weights to a directory of the run, whole or not at all.

    Raises:
        ValueError: a weight is not finite; an existing directory stays as it is.
    """
    check_finite(run, state)
    with atomic_directory(run.out / name) as directory:
        save_bilm(state.model, directory, Card(**state.progress.card))
        save_head(state.head, run.vocab, directory)


def write_checkpoint(run: Run, state: State) -> None:
    """Write all that the run needs to be resumed.

    Raises:
        ValueError: a weight is not finite; the last checkpoint stays as it is.
    """
    check_finite(run, state)
    path, step = run.out / CHECKPOINT, state.progress.step
    state.save(path, run.config)
    if step:
        keep_latest(path, step, run.config.training.keep_checkpoints)


def check_finite(run: Run, state: State, loss: float | None = None) -> None:
    """Check a loss, or all weights.

    Raises:
        ValueError: one is infinite or NaN; the message names a checkpoint from before it.
    """
    if loss is None and state.is_finite():
        return
    if loss is not None and abs(loss) < float("inf"):
        return
    progress, out = state.progress, run.out
    saved, _ = read_checkpoint(out / CHECKPOINT)
    text = (
        f"The loss or a weight is not finite at step {progress.step:,}. Resume from the checkpoint "
        f"of step {saved.step:,} with --resume and a lower --training.learning_rate"
    )
    if progress.best is not None and saved.step > progress.best_step:
        # By then the loss may have been growing already, which no weight shows.
        healthy = f"checkpoint-{progress.best_step:09d}.safetensors"
        earlier = [path.name for path in sorted(out.glob(EARLIER)) if path.name <= healthy]
        if earlier:
            advice = f"copy '{earlier[-1]}' over '{CHECKPOINT}' first"
        else:
            advice = f"start a new run --from '{out / BEST}'"
        text += f"; if that diverges too, {advice}, for perplexity was best at step "
        text += f"{progress.best_step:,}"
    raise ValueError(f"{text}.")
