"""A biLM and its head to a larger one that predicts the same (Net2Net, Chen et al. 2016).

    python scripts/widen.py WEIGHTS OUT --train SHARDS --vocab eval_vocab.txt [--words 65000]
        [--dim 1280 --projection 256 --filters 512] [--scale 0.5 0.125]

New units repeat old ones, in turn; what reads a unit and its copies shares its weight among them,
in random parts, by which they begin to differ. --filters counts those of all widths together. The
head gets the words of --vocab and the most frequent others of the training text, --words in all;
those that it did not have begin as <UNK>, of whose probability each has a share by its frequency.
--scale is that of `release.py`, to undo one. Without sizes, those of WEIGHTS stay.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from release import rescale

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, UNKNOWN, Vocabulary
from spacy_elmo.pretraining.stats import count_corpus
from spacy_elmo.text.shards import Shards
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import read_words
from spacy_elmo.weights.native import save_bilm


def copies(old: int, new: int) -> np.ndarray:
    """The old unit of each new one."""
    return np.arange(new) % old


def read_by(weight: torch.Tensor, units: np.ndarray, rng: np.random.Generator) -> torch.Tensor:
    """Weights ``(…, old)`` that read units, as ``(…, new)``: the copies of a unit share its own."""
    parts = rng.uniform(0.0, 1.0, (*weight.shape[:-1], len(units)))
    totals = np.zeros(tuple(weight.shape))
    np.add.at(totals, (..., units), parts)
    return weight[..., units] * torch.from_numpy(parts / totals[..., units]).to(weight)


@torch.no_grad()
def widen(
    model: BiLM, dim: int, projection: int, filters: Sequence[tuple[int, int]], seed: int = 0
) -> BiLM:
    """A larger biLM with the same layers, each vector repeated.

    Args:
        model: with projections, without clips.
        dim: cells of the new one.
        projection: its `projection_dim`.
        filters: its filters, of the same widths.
    """
    rng, config = np.random.default_rng(seed), model.config
    sizes = {"dim": dim, "projection_dim": projection, "filters": [list(pair) for pair in filters]}
    large = BiLM(type(config).from_dict({**config.to_dict(), **sizes}))
    cells, outputs = copies(config.dim, dim), copies(config.projection_dim, projection)
    gates = np.concatenate([cells + gate * config.dim for gate in range(4)])
    old_filters = [n for _, n in config.filters]
    starts = np.cumsum([0, *old_filters])
    by_width = [copies(old, new) for old, (_, new) in zip(old_filters, filters, strict=True)]
    features = np.concatenate([c + start for c, start in zip(by_width, starts, strict=False)])
    cnn, new = model.char_cnn, large.char_cnn
    new.embedding.weight.copy_(cnn.embedding.weight)
    for one, other, units in zip(cnn.convolutions, new.convolutions, by_width, strict=True):
        other.weight.copy_(one.weight[units])
        other.bias.copy_(one.bias[units])
    for one, other in zip(cnn.highways, new.highways, strict=True):
        for a, b in ((one.carry, other.carry), (one.transform, other.transform)):
            b.weight.copy_(read_by(a.weight[features], features, rng))
            b.bias.copy_(a.bias[features])
    new.projection.weight.copy_(read_by(cnn.projection.weight[outputs], features, rng))
    new.projection.bias.copy_(cnn.projection.bias[outputs])
    for one, other in zip(model.lstm, large.lstm, strict=True):
        for name in ("weight_ih", "weight_hh"):
            weight = getattr(one, name)[:, gates]
            getattr(other, name).copy_(read_by(weight, outputs, rng))
        other.bias.copy_(one.bias[:, gates])
        other.weight_hr.copy_(read_by(one.weight_hr[:, outputs], cells, rng))
    return large.eval()


@torch.no_grad()
def widen_head(
    head: SoftmaxHead, vocab: Vocabulary, words: Vocabulary, counts: dict[str, int], projection: int
) -> SoftmaxHead:
    """The head over other words, and of a wider biLM; see this module.

    Args:
        head: its softmax.
        vocab: its words.
        words: those that it is to have.
        counts: how often each word occurs.
        projection: the biLM's `projection_dim`.
    """
    old = np.array([vocab[word] for word in words.words])
    outputs = copies(head.weight.shape[1], projection)
    large = SoftmaxHead(len(words), projection)
    large.weight.copy_(read_by(head.weight, outputs, np.random.default_rng(0))[old])
    bias = head.bias[old].clone()
    unknown = np.array([counts.get(word, 0) + 1.0 for word in words.words])
    is_new = old == UNKNOWN
    unknown[UNKNOWN] += sum(n for word, n in counts.items() if words[word] == UNKNOWN)
    bias[is_new] += torch.from_numpy(np.log(unknown[is_new] / unknown[is_new].sum())).to(bias)
    large.bias.copy_(bias)
    return large.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("weights")
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=Path, nargs="+", required=True, help="training shards")
    parser.add_argument("--vocab", type=Path, required=True, help="words that the head must have")
    parser.add_argument("--words", type=int, default=65_000)
    for name in ("dim", "projection", "filters"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--scale", type=float, nargs=2, default=(1.0, 1.0))
    args = parser.parse_args()
    found = find_weights(args.weights)
    model, (head, vocab), config = load_bilm(found), load_head(found), found.config()
    rescale(model.requires_grad_(False), head.requires_grad_(False), *args.scale)
    counts = count_corpus(Shards(args.train).sentences(), 100).counts
    given = [word for word in read_words(args.vocab) if word]
    most = [word for word, _ in counts.most_common(args.words)]
    chosen = [word for word in dict.fromkeys([*given, *most]) if word not in SPECIALS]
    chosen = chosen[: args.words - len(SPECIALS)]
    chosen.sort(key=lambda word: (-counts[word], word))
    words = Vocabulary([*SPECIALS, *chosen])
    n_filters = sum(n for _, n in config.filters)
    factor = (args.filters or n_filters) / n_filters
    filters = [(width, round(n * factor)) for width, n in config.filters]
    projection = args.projection or config.projection_dim
    large = widen(model, args.dim or config.dim, projection, filters)
    with atomic_directory(args.out) as directory:
        card = found.card()
        save_bilm(large, directory, replace(card, documents={}))
        save_head(widen_head(head, vocab, words, counts, projection), words, directory)
    print(f"{args.out}: {sum(p.numel() for p in large.parameters()) / 1e6:.1f} M parameters, "
          f"{len(words):,} words")  # fmt: skip


if __name__ == "__main__":
    main()
