"""A run in training: made, loaded, evaluated, written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import islice

import torch
from torch import nn

from ...bilm.model import BiLM
from ...bilm.warm_state import compute_warm_state
from ...lm.head import load_head, save_head
from ...lm.perplexity import Perplexity, evaluate
from ...lm.softmax import LogUniformSampler, SoftmaxHead
from ...lm.stream_state import StreamState
from ...util.files import atomic_directory, write_bytes, write_json
from ...weights.find import load_bilm
from ...weights.layout import STATISTICS, VOCAB, Card
from ...weights.native import save_bilm
from ...weights.statistics import compute_statistics, has_two_words
from ..config import CONFIG
from ..data.teacher import vector_size
from ..data.word_table import TABLE, write_table
from ..train_step import TrainState
from .checkpoint import (
    BEST,
    CHECKPOINT,
    LAST,
    TrainingProgress,
    keep_latest,
    load_checkpoint,
    save_checkpoint,
)
from .distributed import ProcessGroup
from .machine import matmul_precision
from .prepare_run import Run

WARM_UP_SENTENCES = 64
WORDS_OF_THREAD = 512  # of a batch, at least: each thread has gradients of its own
# Whatever the precision in training: evaluations are compared.
at_the_highest_precision = matmul_precision("highest")


class RunState(TrainState):
    """The state of a run, at first its biLM and its head at random initialization.

    Args:
        run: what does not change.
        group: the processes that train.
        progress: how far it has come.

    Raises:
        ValueError: the teacher has no vectors for the text.
    """

    def __init__(self, run: Run, group: ProcessGroup, progress: TrainingProgress):
        self.run, config, settings = run, run.config, run.config.training
        torch.manual_seed(settings.seed)
        model = BiLM(config.model, settings.dropout, settings.compiled_lstm)
        if run.table is not None:
            model.word_vectors.fill(run.table, trainable=settings.train_vectors)
        head = SoftmaxHead(len(run.vocab), config.model.projection_dim)
        sampler = streams = student = None
        self.share_taught = 0.0
        if config.softmax.kind == "sampled":
            sampler = LogUniformSampler(len(run.vocab), config.softmax.n_candidates)
        if settings.state == "carried":
            streams = StreamState(config.model, settings.n_streams)
            model.set_warm_state(streams.first(1))
        if run.corpus.teacher is not None:
            limit = config.corpus.max_words
            size, self.share_taught = vector_size(run.corpus.teacher, run.corpus.reader, limit)
            student = nn.Linear((config.model.n_layers + 1) * config.model.width, size)
        # Streams are carried in one module, and several ranks have one thread each.
        is_divided = group.device.type == "cpu" and group.world_size == 1 and streams is None
        most = max(1, settings.batch_words // WORDS_OF_THREAD)
        n_threads = min(torch.get_num_threads(), most) if is_divided else 1
        modules = (model, head, settings, group, sampler, streams, progress, student)
        super().__init__(*modules, n_threads=n_threads)

    @at_the_highest_precision
    def load(self, message: Callable[[str], None]) -> None:
        """Load the checkpoint of a resumed run, or the weights that a new one starts from, if any.

        Args:
            message: prints what takes long.

        Raises:
            ValueError: they are missing or damaged.
        """
        device, source = self.group.device, self.run.config.start
        if self.run.resumed:
            load_checkpoint(self.run.out / CHECKPOINT, self.modules, self.optimizer, device)
        elif source is not None:
            start = load_bilm(source).to(device)
            copy_parameters(start, self.model)
            if self.run.has_new_head:  # head_first may be 0
                return
            copy_parameters(load_head(source)[0].to(device), self.head)
            if self.group.is_first:
                message("Evaluating on the dev text before the first step …")
                self.progress.before = asdict(evaluate(start, self.head, self.run.dev))

    def describe(self) -> str:
        """One line: the sizes, and where they are trained."""
        bilm, head = (sum(p.numel() for p in m.parameters()) / 1e6 for m in (self.model, self.head))
        group, sampler = self.group, self.sampler
        candidates = processes = taught = ""
        if sampler is not None:
            candidates = f", {sampler.n_candidates:,} candidates of {sampler.n_words:,} words"
        if group.world_size > 1:
            processes = f", {group.world_size} processes"
        if group.device.type == "cpu":
            n_threads = self.n_threads if self.n_threads > 1 else torch.get_num_threads()
            processes += f", {n_threads} thread{'s' if n_threads > 1 else ''}"
        if self.student is not None:
            taught = f", a teacher of {self.share_taught:.0%} of the sentences"
        sizes = f"{bilm:.1f} M parameters, head: {head:.1f} M"
        return f"{sizes}{candidates}{taught}; {group.device}{processes}"

    def start_files(self) -> None:
        """Write what a run has at its start."""
        run, out, settings = self.run, self.run.out, self.settings
        out.mkdir(parents=True, exist_ok=True)
        self.group.claim(out)
        if not run.resumed:
            run.vocab.write(out / VOCAB)
        write_json(out / CONFIG, run.config.to_dict())
        if not run.resumed:
            if run.table is not None:
                write_table(run.table, out / TABLE)
            self.write_checkpoint()
        elif self.progress.step:  # the process may have been killed before it had copied it
            keep_latest(out / CHECKPOINT, self.progress.step, settings.keep_checkpoints)

    @at_the_highest_precision
    def update_warm_state(self) -> None:
        """Set the biLM's warm state, if it is trained with stream states."""
        if self.streams is not None:
            first = islice(self.run.corpus.reader.sentences(), WARM_UP_SENTENCES)
            # Cut off, as training splits them: a text of very long lines would be read for minutes.
            sentences = [words[: self.run.config.corpus.max_words] for words in first]
            self.model.set_warm_state(compute_warm_state(self.model, sentences))

    @at_the_highest_precision
    def evaluate(self) -> Perplexity:
        """Perplexity on the held-out text, or on the part of it that the settings name.

        Raises:
            ValueError: a weight is not finite.
        """
        self.check_finite(self.parameters)
        self.update_warm_state()
        return evaluate(self.model, self.head, self.run.dev, max_words=self.settings.eval_words)

    @at_the_highest_precision
    def evaluate_models(self) -> dict[str, Perplexity]:
        """Perplexities on the whole held-out text of a run's models, as they are on disk.

        Statistics of the text are added to them, unless it has one distinct word only.
        """
        results: dict[str, Perplexity] = {}
        for name in (BEST, LAST):
            path = self.run.out / name
            if path.exists():
                model, (head, _) = load_bilm(path).to(self.group.device), load_head(path)
                results[name] = evaluate(model, head.to(self.group.device), self.run.dev)
                if has_two_words(self.run.dev):
                    statistics = compute_statistics(model, self.run.dev)
                    write_bytes(path / STATISTICS, statistics.to_bytes())
        return results

    def write_model(self, name: str) -> None:
        """Write the weights to a directory of the run, whole or not at all.

        Raises:
            ValueError: a weight is not finite; an existing directory stays as it is.
        """
        self.check_finite(self.parameters)
        out = self.run.out
        with atomic_directory(out / name) as directory:
            save_bilm(self.model, directory, Card(**self.progress.card))
            save_head(self.head, self.run.vocab, directory)

    def write_checkpoint(self) -> None:
        """Write all that the run needs to be resumed.

        Raises:
            ValueError: a weight is not finite; the last checkpoint stays as it is.
        """
        progress, path = self.progress, self.run.out / CHECKPOINT
        self.check_finite(self.parameters)
        save_checkpoint(path, progress, self.run.config, self.modules, self.optimizer)
        if progress.step:
            keep_latest(path, progress.step, self.settings.keep_checkpoints)

    def check_finite(self, tensors: Iterable[torch.Tensor]) -> None:
        """Raise a ValueError if a loss or a weight is infinite or NaN."""
        if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors):
            raise ValueError(
                f"The loss or a weight is not finite at step {self.progress.step:,}. The "
                f"checkpoint and the models written earlier are unchanged: resume from them with "
                f"--resume and a lower --training.learning_rate, or start again with one."
            )


def copy_parameters(source: nn.Module, target: nn.Module) -> None:
    """Copy the values of a module's parameters from another module of the same shape."""
    values = source.state_dict()  # a parameter of the one may be a buffer of the other
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(values[name])
