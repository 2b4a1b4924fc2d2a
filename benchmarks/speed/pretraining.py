"""Words a second of pretraining, beside a plain PyTorch trainer of the same model.

    python benchmarks/speed/pretraining.py CONFIG SHARD [--steps 15] [--threads 1]

CONFIG is one of `python -m spacy elmo pretrain`, SHARD is tokenised text (ours had a million
words), whose words are all predicted, up to the config's max_size. Steps alone are timed, without
the reading of the text, evaluations and checkpoints. Two trainers take a step
each in turn, on the same batches, with the same weights to begin with:

    ours                  the package's model and sampled softmax
    plain                 PyTorch's modules put together: embedding, Conv1d, Linear, and for each
                          layer and direction an nn.LSTM with projections over a PackedSequence

First their gradients are compared, in full precision; then come the medians, in the precision of
the config: with mixed_precision the plain trainers run under autocast. nn.LSTM has no clips, so a
config with clips is refused. Settings may be overridden, as in --training.mixed_precision true.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from spacy.cli._util import parse_config_overrides
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from spacy_elmo.bilm.characters import CharacterIds
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.lm.encoded_sentences import SentenceBatch
from spacy_elmo.lm.softmax import LogUniformSampler, SoftmaxHead
from spacy_elmo.lm.vocabulary import Vocabulary
from spacy_elmo.pretraining.checkpoint import State
from spacy_elmo.pretraining.config import PretrainConfig, read_config
from spacy_elmo.pretraining.corpus import CorpusPosition, TrainingCorpus
from spacy_elmo.pretraining.device import matmul_precision, save_memory_and_time
from spacy_elmo.pretraining.loss import BiLMLoss
from spacy_elmo.pretraining.train_step import train_step
from spacy_elmo.text.shards import Shards
from spacy_elmo.util.threads import threads


class PlainBiLM(nn.Module):
    """The same biLM as one would write it with PyTorch's modules.

    Args:
        ours: the biLM whose shape and weights it gets.
    """

    def __init__(self, ours: BiLM):
        super().__init__()
        config = ours.config
        self.skips = config.use_skip_connections
        self.chars = BiLM(config).char_cnn  # PyTorch's modules already
        self.chars.load_state_dict(ours.char_cnn.state_dict())
        P, D = config.projection_dim, config.dim
        self.lstm = nn.ModuleList(
            nn.ModuleList(nn.LSTM(P, D, proj_size=P, batch_first=True) for _ in range(2))
            for _ in range(config.n_layers)
        )
        with torch.no_grad():
            for both, layer in zip(self.lstm, ours.lstm, strict=True):
                for direction, lstm in enumerate(both):
                    lstm.weight_ih_l0.copy_(layer.weight_ih[direction])
                    lstm.weight_hh_l0.copy_(layer.weight_hh[direction])
                    lstm.weight_hr_l0.copy_(layer.weight_hr[direction])
                    lstm.bias_ih_l0.copy_(layer.bias[direction])
                    lstm.bias_ih_l0[D : 2 * D] += 1  # what ours adds to the forget gate
                    lstm.bias_hh_l0.zero_()

    def forward(self, batch: SentenceBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs of the top layer, padded ``(B, T, P)``, of both directions."""
        x = self.chars(batch.ids[batch.tokens])
        lengths = torch.tensor(batch.lengths)
        sentences = nn.utils.rnn.pad_sequence(list(x.split(batch.lengths)), batch_first=True)
        forward = backward = sentences
        for j, (left, right) in enumerate(self.lstm):
            out_f = run(left, forward, lengths)
            out_b = turn(run(right, turn(backward, lengths), lengths), lengths)
            skip = j > 0 and self.skips
            forward = out_f + forward if skip else out_f
            backward = out_b + backward if skip else out_b
        return forward, backward


def run(lstm: nn.LSTM, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    packed: PackedSequence = pack_padded_sequence(x, lengths, True, enforce_sorted=False)
    return pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]


def turn(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Each sentence from its end to its start, the padding staying where it is."""
    places = torch.arange(x.shape[1])
    index = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    return x.gather(1, index[..., None].expand_as(x))


class Trainer:
    """One of those that take turns."""

    def __init__(self, model: nn.Module, head: SoftmaxHead, config: PretrainConfig):
        self.model, self.head = model, head
        self.parameters = [*model.parameters(), *head.parameters()]
        self.optimizer = torch.optim.Adam(
            self.parameters, lr=config.training.learning_rate, betas=(0.9, 0.99), fused=True
        )
        self.clip = config.training.max_grad_norm
        self.seconds: list[float] = []

    def step(self, loss_of: Callable[[], torch.Tensor]) -> None:
        start = time.perf_counter()
        loss = loss_of()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()
        self.seconds.append(time.perf_counter() - start)


def plain_loss(
    model: PlainBiLM,
    head: SoftmaxHead,
    batch: SentenceBatch,
    sampler: LogUniformSampler,
    rng: np.random.Generator,
) -> torch.Tensor:
    forward, backward = model(batch)
    targets = nn.utils.rnn.pad_sequence(
        list(batch.targets.split(batch.lengths)), batch_first=True, padding_value=-1
    )
    from_left, from_right = targets[:, 1:] >= 0, targets[:, 1:] >= 0
    hidden = torch.cat([forward[:, :-1][from_left], backward[:, 1:][from_right]])
    expected = torch.cat([targets[:, 1:][from_left], targets[:, :-1][from_right]])
    return head.sampled_loss(hidden, expected, sampler.sample(rng))


def main() -> None:
    parser = argparse.ArgumentParser(description="Words a second of pretraining.")
    parser.add_argument("config", type=Path)
    parser.add_argument("shard", type=Path)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments, overrides = parser.parse_known_args()
    with threads(arguments.threads):
        compare(arguments, overrides)


def compare(arguments: argparse.Namespace, overrides: list[str]) -> None:
    """Time the trainers in turn, and print."""
    save_memory_and_time()
    config = read_config(arguments.config, parse_config_overrides(overrides))
    if config.model.cell_clip is not None or config.model.proj_clip is not None:
        raise SystemExit("nn.LSTM has no clips: give a config without them.")
    text = Shards(arguments.shard)
    counts = Counter(word for sentence in text.sentences() for word in sentence)
    vocab = Vocabulary.from_counts(counts, config.vocab.max_size, 1)
    to_ids = CharacterIds(config.model.max_width, config.model.max_characters_per_token)
    corpus = TrainingCorpus(text, vocab, to_ids, config.corpus, config.training)
    sampler = LogUniformSampler(len(vocab), config.softmax.n_candidates)
    state = State(config, len(vocab), n_threads=arguments.threads)
    ours, head = state.model, state.head
    ours.n_threads = arguments.threads
    trainers = {"ours": Trainer(ours, head, config)}
    mixed = config.training.mixed_precision
    plain_head = SoftmaxHead(len(vocab), config.model.projection_dim)
    plain_head.load_state_dict(head.state_dict())
    plain = PlainBiLM(ours)
    trainers["plain"] = Trainer(plain, plain_head, config)

    our_loss = BiLMLoss(ours, head, config.training.dropout)

    def loss_of(name: str, batch: SentenceBatch, step: int) -> torch.Tensor:
        rng = np.random.default_rng(step)
        if name == "ours":
            return our_loss(batch, sampler.sample(rng))
        return plain_loss(plain, plain_head, batch, sampler, rng)

    batches = corpus.batches(CorpusPosition())
    divided = corpus.batches(CorpusPosition(), state.shares())
    [first], _ = next(batches)
    next(divided)
    for name in trainers:
        loss_of(name, first, 0).backward()
    pairs = [
        (head.weight, plain_head.weight),
        (ours.char_cnn.embedding.weight, plain.chars.embedding.weight),
    ]
    apart = max(float((a.grad - b.grad).abs().max() / a.grad.abs().max()) for a, b in pairs)
    print(f"gradients of plain: {apart:.1e} from ours, relative to the largest")

    n_words = []
    with matmul_precision(config.training.matmul_precision):
        for step in range(arguments.steps + 1):
            [batch], _ = next(batches)
            n_words.append(batch.n_words)
            parts_of_threads, _ = next(divided)
            start = time.perf_counter()
            train_step(state, parts_of_threads, config.training.learning_rate)
            trainers["ours"].seconds.append(time.perf_counter() - start)
            with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
                trainers["plain"].step(partial(loss_of, "plain", batch, step))
    for name, trainer in trainers.items():
        # The first step of each is not counted.
        rates = [n / s for n, s in zip(n_words[1:], trainer.seconds[1:], strict=True)]
        pairs_of = zip(trainer.seconds[1:], trainers["ours"].seconds[1:], strict=True)
        ratios = [its / own for its, own in pairs_of]
        print(
            f"{name:31} {statistics.median(rates):8,.0f} words/s"
            f"  ({statistics.median(ratios):.2f} × the time of ours)"
        )


if __name__ == "__main__":
    main()
