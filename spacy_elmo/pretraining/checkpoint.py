"""The state of a run: what its steps change, saved as a checkpoint."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from ..bilm.model import BiLM
from ..lm.softmax import LogUniformSampler, SoftmaxHead
from ..util.files import members, naming_errors
from ..util.settings import Settings, at_least
from ..weights.layout import Card
from ..weights.tensors import check_tensors, open_tensors, write_tensors
from .config import PretrainConfig
from .corpus import CorpusPosition
from .distributed import ProcessGroup
from .loss import BiLMLoss

CHECKPOINT = "checkpoint.safetensors"
WORDS_OF_THREAD = 512  # fewer words do not pay for a thread, which has gradients of its own


@dataclass
class Progress(Settings):
    """How far a run has come.

    Attributes:
        step: the number of optimizer steps taken.
        position: the next batch of the training text.
        words: the number of words trained on, without boundaries.
        seconds: the time spent on training and evaluation.
        best: the lowest mean perplexity on the dev text; None before the first evaluation.
        fingerprints: the fingerprints of the two texts, to which ``position`` and ``best`` belong.
        epoch_steps: the number of steps in an epoch, or a few more.
        head_first: the number of first steps that train the head alone.
        step_seconds: how long a step takes; 0 until a run with ``minutes`` has timed some.
        card: the card of the biLM, see `weights.layout.Card`.
        is_finished: whether the run has come to its end.
    """

    title = "Progress:"
    step: int = at_least(0, 0)
    position: CorpusPosition = field(default_factory=CorpusPosition)
    words: int = at_least(0, 0)
    seconds: float = 0.0
    best: float | None = None
    fingerprints: list[str] = field(default_factory=list)
    epoch_steps: int = at_least(0, 0)
    head_first: int = at_least(0, 0)
    step_seconds: float = at_least(0, 0.0)
    card: dict[str, Any] = field(default_factory=dict)
    is_finished: bool = False


class State:
    """What the steps of a run change. At first, the biLM and the head are random.

    Args:
        config: the settings of the run, with [model].
        n_words: the size of the vocabulary.
        group: the processes that train; None for this one, on the CPU.
        progress: how far the run has come.
        teacher_size: the size of the teacher's vectors; 0 without a teacher.

    Attributes:
        modules: the loss for each thread that shares a batch; all have the same parameters in
            memory. A single process on a CPU has as many threads as PyTorch, with `WORDS_OF_THREAD`
            words or more for each.
    """

    def __init__(
        self,
        config: PretrainConfig,
        n_words: int,
        group: ProcessGroup | None = None,
        progress: Progress | None = None,
        teacher_size: int = 0,
    ):
        shape, settings = config.model, config.training
        assert shape is not None
        self.progress = progress or Progress()
        self.group = group or ProcessGroup(torch.device("cpu"))
        device = self.group.device
        torch.manual_seed(settings.seed)
        self.model = BiLM(shape, settings.dropout).train()
        self.head = SoftmaxHead(n_words, shape.projection_dim)
        self.sampler: LogUniformSampler | None = None
        if config.softmax.kind == "sampled":
            self.sampler = LogUniformSampler(n_words, config.softmax.n_candidates, device)
        student = nn.Linear(shape.depth * shape.width, teacher_size) if teacher_size else None
        self.loss = BiLMLoss(self.model, self.head, settings, student).to(device)
        self.parameters = [*self.loss.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, betas=(0.9, 0.99), fused=True)
        alone = device.type == "cpu" and self.group.world_size == 1
        most = settings.batch_words // WORDS_OF_THREAD if alone else 1
        n_threads = max(1, min(torch.get_num_threads(), most))
        self.modules = [self.loss, *(self.loss.replica() for _ in range(1, n_threads))]

    def shares(self) -> list[tuple[int, int]]:
        """The shares of a batch that this process reads, see `TrainingCorpus.batches`."""
        n_threads = len(self.modules)
        first, n = self.group.rank * n_threads, self.group.world_size * n_threads
        return [(first + i, n) for i in range(n_threads)]

    def is_finite(self) -> bool:
        """Tell if no weight is infinite or NaN."""
        return all(bool(parameter.isfinite().all()) for parameter in self.parameters)

    def save(self, path: Path, config: PretrainConfig) -> None:
        """Write a checkpoint, whole or not at all.

        Args:
            path: the file.
            config: the settings of the run, which are compared when it resumes.
        """
        tensors = self.loss.state_dict()
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{key}": value for key, value in moments.items()}
        facts = {"progress": asdict(self.progress), "config": config.to_dict()}
        write_tensors(tensors, path, {key: json.dumps(value) for key, value in facts.items()})

    def load(self, path: Path) -> None:
        """Load the tensors of a checkpoint; `read_checkpoint` reads its progress.

        Raises:
            ValueError: the checkpoint cannot be read, or its tensors have other names or shapes.
        """
        expected, moments = self.loss.state_dict(), ("exp_avg", "exp_avg_sq")
        found, read = open_tensors(path, "the checkpoint")
        trained = []  # no parameter that has been frozen so far
        for number, parameter in enumerate(self.parameters):
            if any(name.startswith(f"optimizer.{number}.") for name in found):
                trained.append(number)
                expected |= {f"optimizer.{number}.{key}": parameter for key in moments}
                expected[f"optimizer.{number}.step"] = torch.tensor(0.0)
        tensors = check_tensors(expected, f"The checkpoint {path}", found, read)
        states = {
            number: {key: tensors.pop(f"optimizer.{number}.{key}") for key in ("step", *moments)}
            for number in trained
        }
        self.loss.load_state_dict(tensors)
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": states})


def read_checkpoint(path: Path) -> tuple[Progress, PretrainConfig]:
    """The progress and the config in a checkpoint.

    Raises:
        ValueError: there is no checkpoint, or it cannot be read.
    """
    with naming_errors("the checkpoint", path):
        with safe_open(path, "pt") as file:
            facts = {key: json.loads(text) for key, text in (file.metadata() or {}).items()}
        data, config = members(facts, progress=dict, config=dict)
        [position] = members(data, position=list)
        if len(position) != len(CorpusPosition._fields):
            raise ValueError(
                f"position is {position}, expected {len(CorpusPosition._fields)} numbers"
            )
        Progress.check_names(data)
        progress = Progress(**data)
        Card.from_dict(progress.card)
        return progress, PretrainConfig.from_dict(config)
