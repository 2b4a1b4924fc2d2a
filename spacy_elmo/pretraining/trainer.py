"""The training loop of a biLM: read it from top to bottom."""

from __future__ import annotations

import filecmp
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..bilm.find import load_bilm
from ..bilm.layout import VOCAB, Card
from ..bilm.model import BiLM
from ..bilm.warm import warm_state
from ..bilm.weights import WEIGHTS, new_directory, save_bilm
from ..bilm.word_vectors import WordTable
from .carried import Carried
from .checkpoint import CHECKPOINT, Progress, keep_checkpoint, load_checkpoint, save_checkpoint
from .config import PretrainConfig, TrainingSettings
from .corpus import Batch, Block
from .files import write_text
from .head import load_head, save_head
from .log import LOG, Follow, start_log
from .perplexity import Perplexity, evaluate, predicted
from .prepare import BEST, CONFIG, LAST, has_ended, prepare
from .process import (
    bound_kernels,
    find_device,
    keep_freed_memory,
    matmul_precision,
    stop_on_signals,
)
from .report import Report
from .softmax import LogUniform, SoftmaxHead
from .source import Source
from .word_table import TABLE, find_table, write_table


def pretrain(
    config: PretrainConfig,
    out: Path,
    sources: Mapping[str, Source] | None = None,
    *,
    device: str = "cpu",
    resume: bool = False,
    quiet: bool = False,
    follow: Follow | None = None,
    vectors: WordTable | None = None,
) -> Progress:
    """Train a biLM as a config says; Ctrl-C ends it after the step under way, nothing is lost.

    Args:
        config: all settings.
        out: directory for ``model-best``, ``model-last``, the checkpoint, the config and the log.
        sources: the corpus readers that the config names, made, see `prepare`.
        device: where PyTorch computes, ``"cpu"`` or ``"cuda:0"``.
        resume: go on from the checkpoint in ``out``.
        quiet: print nothing.
        follow: is told each entry of the log.
        vectors: the word vectors of a new run whose ``token_encoder`` is "vectors", if they are
            not a file that [paths] vectors names. A run that is resumed has them.

    Returns:
        How far the run has come.

    Raises:
        ValueError: a setting, a path or a checkpoint is wrong (nothing has been written then);
            or a shard cannot be read any more, or the loss is not finite (the last checkpoint
            and the models stay as they were).
    """
    bound_kernels()
    report = Report(quiet)
    where = find_device(device)
    config, vectors = find_table(config, out, resume, vectors)
    run = prepare(config, out, resume, report.say, sources, vectors)
    progress, settings = run.progress, run.training

    torch.manual_seed(settings.seed)
    model = BiLM(config.model, settings.dropout)
    if vectors is not None:
        model.word_vectors.fill(vectors, learns=settings.train_vectors)
    model = model.to(where).train()
    head = SoftmaxHead(len(run.vocab), config.model.projection_dim).to(where)
    modules: dict[str, nn.Module] = {"bilm": model, "head": head}
    carried = None
    if settings.state == "carried":
        modules["carried"] = carried = Carried(config.model, settings.n_streams).to(where)
        model.set_warm_state(carried.of(1))
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, betas=(0.9, 0.99), fused=True)
    sizes = [sum(p.numel() for p in module.parameters()) / 1e6 for module in (model, head)]
    report.say(f"{sizes[0]:.1f} M parameters, and {sizes[1]:.1f} M of the head; {where}")
    if resume:
        load_checkpoint(out / CHECKPOINT, modules, optimizer, where)
        report.say(f"Resumed after step {progress.step:,} ({progress.words:,} words)")
    elif config.paths.weights is not None:
        start = load_bilm(config.paths.weights).to(where)
        copy_parameters(start, model)
        if not progress.held:  # the head goes on too
            copy_parameters(load_head(config.paths.weights)[0].to(where), head)
            progress.before = asdict(evaluate(start, head, run.dev))
        del start

    # From here on there is something to be written.
    out.mkdir(parents=True, exist_ok=True)
    run.vocab.write(out / VOCAB)
    if vectors is not None and not resume:
        write_table(vectors, out / TABLE)
    write_text(out / CONFIG, config.to_text())
    keep_freed_memory()

    def write_model(name: str) -> None:
        check_finite(parameters, progress.step)
        with new_directory(out / name) as directory:
            save_bilm(model, directory, Card(**progress.card))
            save_head(head, run.vocab, directory)

    def write_checkpoint() -> None:
        check_finite(parameters, progress.step)
        save_checkpoint(out / CHECKPOINT, progress, config.to_dict(), modules, optimizer)
        keep_checkpoint(out / CHECKPOINT, progress.step, settings.keep_checkpoints)

    losses: list[torch.Tensor] = []
    shown_words, shown_seconds = progress.words, progress.seconds
    last_checkpoint = time.monotonic()
    with start_log(out / LOG, run.log, follow) as log:
        with (
            matmul_precision(settings.matmul_precision),
            report.steps(settings.max_steps, progress.step),
            stop_on_signals(quiet) as stopped,
        ):
            if progress.step == 0 and progress.before is not None:
                result = Perplexity(**progress.before)
                report.say(f"before: {describe(result)}")
                log.write(
                    step=0,
                    words=0,
                    forward=result.forward,
                    backward=result.backward,
                    mean=result.mean,
                )
            batches = run.corpus.batches(progress.place)
            while not has_ended(progress, settings) and not stopped():
                started = time.monotonic()
                batch, progress.place = next(batches)
                rate = learning_rate(settings, progress.step)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                if progress.held:
                    model.requires_grad_(progress.step >= progress.held)
                # All randomness of a step follows from its number, so a resumed run has the same.
                rng = np.random.default_rng([settings.seed, progress.step])
                torch.manual_seed(int(rng.integers(2**31)))
                loss = step_loss(
                    model, head, batch.to(where), run.sampler, settings.dropout, rng, carried
                )
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
                optimizer.step()
                losses.append(loss.detach())
                progress.step += 1
                progress.words += batch.n_words
                progress.seconds += time.monotonic() - started
                report.step()
                last = has_ended(progress, settings)
                if progress.step % settings.log_every == 0 or last:
                    mean = float(torch.stack(losses).mean())
                    losses.clear()
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
                evaluating = progress.step % settings.eval_every == 0 or last
                if evaluating:
                    started = time.monotonic()
                    check_finite(parameters, progress.step)
                    if carried is not None:
                        model.set_warm_state(warm_state(model, run.passage))
                    result = evaluate(model, head, run.dev, max_words=settings.eval_words)
                    seconds = time.monotonic() - started
                    progress.seconds += seconds
                    shown_seconds += seconds
                    report.say(f"step {progress.step:,}: {describe(result)}")
                    log.write(
                        step=progress.step,
                        words=progress.words,
                        forward=result.forward,
                        backward=result.backward,
                        mean=result.mean,
                    )
                    if progress.best is None or result.mean < progress.best:
                        progress.best = result.mean
                        write_model(BEST)
                # There is never a model of a run without a checkpoint to resume it from.
                if evaluating or time.monotonic() - last_checkpoint > settings.checkpoint_seconds:
                    write_checkpoint()
                    last_checkpoint = time.monotonic()
            if carried is not None:
                model.set_warm_state(warm_state(model, run.passage))
            write_checkpoint()
            write_model(LAST)

        if not has_ended(progress, settings):
            report.say(f"Stopped after step {progress.step:,}; go on with --resume")
            return progress
        progress.n_steps = progress.step
        report.say(f"All {progress.step:,} steps are done; reading the whole dev text …")
        results = evaluate_models(out, run.dev, where)
        if progress.before is not None:
            results = {"before": Perplexity(**progress.before), **results}
        for name, result in results.items():
            log.write(step=progress.step, model=name, **asdict(result), mean=result.mean)
        report.say(table(results))
    return progress


def step_loss(
    model: BiLM,
    head: SoftmaxHead,
    batch: Batch,
    sampler: LogUniform | None,
    dropout: float,
    rng: np.random.Generator,
    carried: Carried | None = None,
) -> torch.Tensor:
    """Mean loss in nats of both directions over one batch (Peters et al. 2018, §3.1).

    Args:
        carried: the states in which the sentences start; left in those in which they end.
    """
    read = predicted(model, batch, carried.of(len(batch.lengths)) if carried is not None else None)
    if carried is not None:
        carried.keep(read.state)
    hidden = F.dropout(torch.cat([read.hidden_f, read.hidden_b]), dropout)
    targets = torch.cat([read.targets_f, read.targets_b])
    if sampler is None:
        return head.loss(hidden, targets)
    return head.sampled_loss(hidden, targets, sampler.sample(rng).to(hidden.device))


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Give a module the numbers of another of the same shape."""
    numbers = source.state_dict()  # what learns in the one may not learn in the other
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(numbers[name])


def learning_rate(settings: TrainingSettings, step: int) -> float:
    """The rate of a step: up over the warm-up, level, down to zero over the last steps."""
    up = (step + 1) / max(1, settings.warmup_steps)
    down = (settings.max_steps - step) / max(1, settings.decay_steps)
    return settings.learning_rate * min(1.0, up, down)


def check_finite(tensors: Sequence[torch.Tensor], step: int) -> None:
    """Raise a ValueError if a loss or a weight is infinite or NaN."""
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors):
        raise ValueError(
            f"The loss or a weight is not finite at step {step:,}. The checkpoint and the models "
            f"written before stay as they are: go on from them with --resume and a lower "
            f"--training.learning_rate, or start anew with one."
        )


def evaluate_models(out: Path, dev: Block, device: torch.device) -> dict[str, Perplexity]:
    """Perplexities over the whole dev text of a run's models, as they are on disk."""
    results: dict[str, Perplexity] = {}
    for name in (BEST, LAST):
        if not (out / name).exists():
            continue
        if BEST in results and filecmp.cmp(out / BEST / WEIGHTS, out / LAST / WEIGHTS, False):
            results[name] = results[BEST]  # the last model is the best
        else:
            head, _ = load_head(out / name)
            results[name] = evaluate(load_bilm(out / name).to(device), head.to(device), dev)
    return results


def describe(result: Perplexity) -> str:
    """One line on a perplexity."""
    return (
        f"perplexity {result.mean:.1f} (forward {result.forward:.1f}, backward "
        f"{result.backward:.1f}), {result.unknown_rate:.2%} <UNK>"
    )


def table(results: dict[str, Perplexity]) -> str:
    """A line of perplexities for each model."""
    titles = ("forward", "backward", "mean", "words", "<UNK>")
    lines = ["{:<12}{:>10}{:>10}{:>10}{:>12}{:>8}".format("perplexity", *titles)]
    for name, result in results.items():
        lines.append(
            f"{name:<12}{result.forward:>10.2f}{result.backward:>10.2f}{result.mean:>10.2f}"
            f"{result.n_predicted:>12,}{result.unknown_rate:>8.2%}"
        )
    return "\n".join(lines)
