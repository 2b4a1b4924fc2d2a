"""A finished pretraining run to weights that ship: half precision, a head of fewer words.

    python scripts/release.py RUN OUT --train SHARDS [--words 20000] [--steps 300]

Takes ``model-best`` of a run of ``python -m spacy elmo pretrain``. The head is restricted to its
most frequent words; the row of <UNK>, which now also stands for the words left out, is refitted on
the training text, and all else stays as it is. The log and the config (without its paths) go along.
The statistics of the run go along, too. A card, licence, meta.json, lists of texts and the log of a
first training that are in OUT already stay there.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path

import torch
from confection import Config
from torch.nn import functional as F

from spacy_elmo.lm.forward import hidden_states
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import UNKNOWN, Vocabulary
from spacy_elmo.pretraining.config import Paths, TrainingSettings, read_config
from spacy_elmo.pretraining.data.corpus import CorpusPosition, TrainingCorpus
from spacy_elmo.text.shards import Shards, find_shards
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import DOCUMENTS, META
from spacy_elmo.weights.native import save_bilm, save_statistics

TEXTS = ("pages.txt.xz", "books.txt", "documents.txt.xz", "heldout.txt")
COPIED = (*DOCUMENTS, META, *TEXTS, "first_training.cfg", "first_training.jsonl")


def fit_unknown(
    run: Path, shards: list[Path], n_words: int, steps: int
) -> tuple[SoftmaxHead, Vocabulary]:
    """The head over the first words, with a row of <UNK> that stands for all others."""
    config = read_config(run / "pretrain.json")
    model = load_bilm(run / "model-best").requires_grad_(False)
    head, vocab = load_head(run / "model-best")
    vocab = Vocabulary(vocab.words[:n_words])
    weight, bias = head.weight.detach()[:n_words], head.bias.detach()[:n_words]
    row = torch.cat([weight[UNKNOWN], bias[UNKNOWN, None] + 1.0]).requires_grad_(True)
    corpus = TrainingCorpus(
        Shards(shards),
        vocab,
        model.token_encoder.to_ids,
        replace(config.corpus, buffer_words=1_000_000),
        TrainingSettings(batch_words=1024, seed=1),
    )
    optimizer = torch.optim.Adam([row], lr=0.02)
    batches = corpus.batches(CorpusPosition())
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.02 * (1 - step / steps)
        with torch.no_grad():
            read = hidden_states(model, next(batches)[0])
            hidden = torch.cat([read.hidden_f, read.hidden_b])
            targets = torch.cat([read.targets_f, read.targets_b])
            logits = F.linear(hidden, weight, bias)
            logits[:, UNKNOWN] = -torch.inf
            known = torch.logsumexp(logits, dim=1)
        # Only the choice between <UNK> and any known word depends on the row.
        loss = F.binary_cross_entropy_with_logits(
            hidden @ row[:-1] + row[-1] - known, (targets == UNKNOWN).float()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    small = SoftmaxHead(n_words, model.config.projection_dim)
    weight, bias = weight.clone(), bias.clone()
    weight[UNKNOWN], bias[UNKNOWN] = row.detach()[:-1], row.detach()[-1]
    small.load_state_dict({"weight": weight.half().float(), "bias": bias.half().float()})
    return small, vocab


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=Path, required=True, nargs="+", help="training shards")
    parser.add_argument("--words", type=int, default=20_000, help="words of the head")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    run, out = arguments.run, arguments.out

    head, vocab = fit_unknown(run, find_shards(arguments.train), arguments.words, arguments.steps)
    config = read_config(run / "pretrain.json")
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    with atomic_directory(out) as directory:
        save_bilm(load_bilm(run / "model-best"), directory, half=True)
        save_head(head, vocab, directory, half=True)
        statistics = find_weights(run / "model-best").statistics()
        if statistics is not None:
            save_statistics(statistics, directory)
        Config(replace(config, paths=Paths()).to_dict()).to_disk(directory / "training.cfg")
        lines = [json.dumps(entry) + "\n" for entry in entries]
        (directory / "training.jsonl").write_text("".join(lines), encoding="utf-8")
        for name in COPIED:
            if (out / name).exists():
                shutil.copy2(out / name, directory / name)
    print(f"{out}: {len(vocab):,} words in the head")
    for file in sorted(out.iterdir()):
        print(f"  {file.name:22} {file.stat().st_size / 1e6:6.2f} MB")


if __name__ == "__main__":
    main()
