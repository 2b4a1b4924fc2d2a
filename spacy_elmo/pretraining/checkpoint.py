"""The state of a run, all that its steps change; on disk it is a checkpoint."""

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
from ..util.files import members, reading
from ..util.settings import Settings, at_least
from ..weights.layout import Card
from ..weights.tensors import check_tensors, write_tensors
from .config import PretrainConfig
from .corpus import CorpusPosition
from .distributed import ProcessGroup
from .loss import BiLMLoss

CHECKPOINT = "checkpoint.safetensors"
WORDS_OF_THREAD = 512  # of a batch, at least: each thread has gradients of its own


@dataclass
class Progress(Settings):
    """How far a run has come: the numbers of its state.

    Attributes:
        step: optimizer steps taken; the random numbers of a step follow from it.
        position: the next batch of the corpus.
        words: words trained on, without boundaries.
        seconds: time spent in training and evaluation.
        best: lowest mean perplexity on the dev text so far; None before the first evaluation.
        fingerprints: of the texts, to which alone ``position`` and ``best`` apply.
        epoch_steps: how many steps an epoch has, at most.
        head_first: the first steps, in which the biLM is frozen and only the head is trained.
        final_words: of the dev text that the finished models are evaluated on; 0: all.
        card: name, language, licence and sources of the biLM, see `weights.layout.Card`.
        is_finished: the run has come to its end.
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
    final_words: int = at_least(0, 0)
    card: dict[str, Any] = field(default_factory=dict)
    is_finished: bool = False


class State:
    """The state of a run, at first its biLM and its head at random initialization.

    Args:
        config: all settings, with the model's shape.
        n_words: size of the vocabulary.
        group: the processes that train; None for this one on the CPU.
        progress: how far the run has come.
        teacher_size: of a teacher's vectors; 0 without a teacher.
        n_threads: among which each batch is divided, if there is one process; None for as many as
            PyTorch has, and as the batches are large enough for.
    """

    def __init__(
        self,
        config: PretrainConfig,
        n_words: int,
        group: ProcessGroup | None = None,
        progress: Progress | None = None,
        teacher_size: int = 0,
        n_threads: int | None = None,
    ):
        shape, settings = config.model, config.training
        assert shape is not None
        self.settings, self.progress = settings, progress or Progress()
        self.group = group or ProcessGroup(torch.device("cpu"))
        device = self.group.device
        torch.manual_seed(settings.seed)
        self.model = BiLM(shape, settings.dropout).train()
        self.head = SoftmaxHead(n_words, shape.projection_dim)
        self.sampler: LogUniformSampler | None = None
        student: nn.Linear | None = None
        if config.softmax.kind == "sampled":
            self.sampler = LogUniformSampler(n_words, config.softmax.n_candidates).to(device)
        if teacher_size:
            student = nn.Linear((shape.n_layers + 1) * shape.width, teacher_size)
        teacher = (student, settings.teacher_weight)
        self.loss = BiLMLoss(self.model, self.head, settings.dropout, *teacher).to(device)
        self.parameters = [*self.loss.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, betas=(0.9, 0.99), fused=True)
        if n_threads is None:
            alone = device.type == "cpu" and self.group.world_size == 1
            most = settings.batch_words // WORDS_OF_THREAD if alone else 1
            n_threads = max(1, min(torch.get_num_threads(), most))
        self.n_threads = n_threads
        self._module: nn.Module = self.loss
        self._replicas: list[BiLMLoss] = []
        self._trains_bilm: bool | None = None

    def shares(self) -> list[tuple[int, int]]:
        """The shares of a batch that are read here, one for each thread; see `train_step`."""
        first, n = self.group.rank * self.n_threads, self.group.world_size * self.n_threads
        return [(first + i, n) for i in range(self.n_threads)]

    def modules_of_threads(self) -> tuple[nn.Module, list[BiLMLoss]]:
        """The loss as a module, of which the ranks average the gradients, and a replica for each
        further thread; with the biLM frozen in the steps in which only the head is trained."""
        trains_bilm = self.progress.step >= self.progress.head_first
        if trains_bilm != self._trains_bilm:
            self._trains_bilm = trains_bilm
            self.model.requires_grad_(trains_bilm)
            self._module = self.group.wrap(self.loss)
            self._replicas = [self.loss.replica() for _ in range(1, self.n_threads)]
        return self._module, self._replicas

    def is_finite(self) -> bool:
        """Tell if no weight is infinite or NaN."""
        return all(bool(parameter.isfinite().all()) for parameter in self.parameters)

    # The checkpoint

    def save(self, path: Path, config: PretrainConfig) -> None:
        """Write a checkpoint, whole or not at all.

        Args:
            path: the file.
            config: the run's settings, compared on resuming.
        """
        tensors = self.loss.state_dict()
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{key}": value for key, value in moments.items()}
        facts = {"progress": asdict(self.progress), "config": config.to_dict()}
        metadata = {key: json.dumps(value) for key, value in facts.items()}
        write_tensors(tensors, path, metadata)

    def load(self, path: Path) -> None:
        """Load the tensors of a checkpoint; its progress is that of `read_checkpoint`.

        Raises:
            ValueError: the checkpoint cannot be read, or its tensors have other names or shapes.
        """
        device = str(self.group.device)
        with reading("the checkpoint", path), safe_open(path, "pt", device=device) as file:
            # Copies: the file is memory-mapped, and will be replaced.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        adam = {name: tensors.pop(name) for name in [*tensors] if name.startswith("optimizer.")}
        check_tensors(self.loss.state_dict(), f"The checkpoint {path}", tensors)
        self.loss.load_state_dict(tensors)
        states = {}
        for number, parameter in enumerate(self.parameters):
            expected = {"step": torch.tensor(0.0), "exp_avg": parameter, "exp_avg_sq": parameter}
            keys = {key: f"optimizer.{number}.{key}" for key in expected}
            found = {key: adam[name] for key, name in keys.items() if name in adam}
            if found:  # none for a parameter that has been frozen so far
                check_tensors(expected, f"The checkpoint {path}, optimizer.{number}", found)
                states[number] = found
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": states})


def read_checkpoint(path: Path) -> tuple[Progress, PretrainConfig]:
    """A checkpoint's progress and config.

    Raises:
        ValueError: there is no checkpoint, or it cannot be read.
    """
    with reading("the checkpoint", path):
        with safe_open(path, "pt") as file:
            facts = {key: json.loads(text) for key, text in (file.metadata() or {}).items()}
        data, config = members(facts, progress=dict, config=dict)
        [position] = members(data, position=dict)
        Progress.check_names(data)
        CorpusPosition.check_names(position)
        progress = Progress(**{**data, "position": CorpusPosition(**position)})
        Card.from_dict(progress.card)
        return progress, PretrainConfig.from_dict(config)
