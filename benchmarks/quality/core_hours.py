"""What does a core-hour of training buy? Arms from the same start, for the same time.

    python benchmarks/quality/core_hours.py DATA START SHARDS OUT --seconds 1200 ARM …

START is a directory of weights with a head whose vocabulary has the words of DATA/eval_vocab.txt,
SHARDS the text, tokenized. Each ARM is ``name`` or ``name:section.setting=value,…``, as in
``large:training.batch_words=4096,training.learning_rate=0.004``; ``taught:teacher=VECTORS`` also
learns the vectors in a file of `elmo encode --tokenized`, of sentences that it has;
``muon:muon=0.001`` trains the matrices of the LSTM layers with Muon, at this rate. The learning
rate warms up over the first 5 % of the processor's time (user and system; with --device cuda:0, of
the clock's) and falls to zero over the last 40 % (--decay), so that a slower step has fewer of
them. Then it is measured: the perplexity of --words of each held-out text in DATA, with the full
softmax, restricted to eval_vocab.txt; the probe of names (`probes.py`) on the dev set of WNUT-17;
and a third of BLiMP's pairs (`blimp.py`). A line for each arm goes to OUT/results.jsonl; arms that
have one are skipped, and an interrupted arm is resumed from its checkpoint, written every minute.
`--table` prints the results.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import deque
from pathlib import Path
from typing import Any

import blimp
import probes
import torch
from perplexities import LM
from results import parse_arm
from torch import nn

from spacy_elmo.cli.perplexity import read_text
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.softmax import restrict_head
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.corpus import TrainingCorpus, pinned, read_ahead
from spacy_elmo.pretraining.distributed import process_group
from spacy_elmo.pretraining.machine import keep_freed_memory, matmul_precision
from spacy_elmo.pretraining.prepare import copy_parameters
from spacy_elmo.pretraining.state import State, read_checkpoint
from spacy_elmo.pretraining.teacher import EncodedVectors, vector_size
from spacy_elmo.pretraining.train_step import train_step
from spacy_elmo.text.shards import Shards
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import read_words
from spacy_elmo.weights.native import save_bilm

TEXTS = ("enwiki", "masc")
MEASURES = (*TEXTS, "names", "blimp")
PROBE_SEEDS = range(3)
WARM_UP = 0.05  # of the time
BASE = {
    "training.batch_words": 2048, "training.learning_rate": 0.002, "training.dropout": 0.0,
    "training.matmul_precision": "highest", "training.compiled_lstm": True,
    "training.max_steps": 10**6, "softmax.n_candidates": 2048, "corpus.buffer_words": 2_000_000,
}  # fmt: skip


class AdamAndMuon(torch.optim.Adam):
    """Adam; Muon for the matrices of the LSTM layers, those of each direction and gate by itself
    (Jordan et al. 2024; the length of an update as in Liu et al. 2025).

    Args:
        adam: an optimizer of all parameters, whose settings are taken.
        lstm: its matrices are ``(2, rows, columns)``.
        factor: Muon's learning rate, divided by Adam's.
    """

    def __init__(self, adam: torch.optim.Adam, lstm: nn.Module, factor: float):
        parameters = adam.param_groups[0]["params"]
        super().__init__(parameters, betas=adam.defaults["betas"], fused=True)
        self.of_lstm = [p for p in lstm.parameters() if p.dim() == 3]
        matrices = [nn.Parameter(m) for p in self.of_lstm for m in self.matrices(p.detach())]
        self.muon = torch.optim.Muon(matrices, weight_decay=0, adjust_lr_fn="match_rms_adamw")
        self.factor = factor

    @staticmethod
    def matrices(x: torch.Tensor) -> list[torch.Tensor]:
        """Views of them: the input of the four gates is narrower than they are, together."""
        n = 4 if x.shape[1] > x.shape[2] else 1
        return [matrix for direction in x for matrix in direction.chunk(n)]

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        gradients = [matrix for p in self.of_lstm for matrix in self.matrices(p.grad)]
        group = self.muon.param_groups[0]
        for matrix, gradient in zip(group["params"], gradients, strict=True):
            matrix.grad = gradient
        for parameter in self.of_lstm:
            parameter.grad = None
        group["lr"] = self.factor * self.param_groups[0]["lr"]
        self.muon.step()
        super().step()


def parse(arm: str, args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The name of an arm, and all of its settings."""
    name, changes = parse_arm(arm)
    start = {"paths.weights": str(args.start), "training.seed": args.seed}
    return name, {**start, **BASE, **changes}


def train(name: str, settings: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Train one arm; what it reached."""
    sections: dict[str, dict[str, Any]] = {}
    given = json.dumps({**settings, "seconds": args.seconds, "decay": args.decay}, sort_keys=True)
    path, muon = settings.pop("teacher", None), settings.pop("muon", None)
    if muon is not None and not hasattr(torch.optim, "Muon"):
        raise SystemExit(f"The arm '{name}' needs PyTorch 2.9, with torch.optim.Muon; this is "
                         f"PyTorch {torch.__version__}")  # fmt: skip
    for key, value in settings.items():
        section, _, setting = key.partition(".")
        sections.setdefault(section, {})[setting] = value
    config = PretrainConfig.from_dict(sections)
    folder, training = args.out / name, config.training
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint, note = folder / "checkpoint.safetensors", folder / "settings.json"
    if checkpoint.exists() and note.exists() and note.read_text(encoding="utf-8") != given:
        raise SystemExit(f"In {folder} an arm of this name has been stopped, with other settings: "
                         f"delete the folder, or give the arm another name")  # fmt: skip
    note.write_text(given, encoding="utf-8")
    head, vocab = load_head(args.start)
    start = load_bilm(args.start)
    config = config.with_model(start.config, str(args.start))
    reader, teacher, size = Shards(args.shards), None, 0
    if path is not None:
        teacher = EncodedVectors(path)
        size, _ = vector_size(teacher, reader, config.corpus.max_words)
    keep_freed_memory()
    losses: deque[torch.Tensor] = deque(maxlen=20)
    clock = time.process_time if args.device == "cpu" else time.monotonic
    with process_group(args.device) as group, matmul_precision(training.matmul_precision):
        state = State(config, len(vocab), group, teacher_size=size, n_threads=1)
        model = state.model
        copy_parameters(start, model)
        copy_parameters(head, state.head)
        if muon is not None:
            factor = muon / training.learning_rate
            state.optimizer = AdamAndMuon(state.optimizer, model.lstm, factor)
        if checkpoint.exists():  # it has no momentum of Muon's
            state.progress, _ = read_checkpoint(checkpoint)
            state.load(checkpoint)
        progress = state.progress
        to_ids = model.token_encoder.to_ids
        corpus = TrainingCorpus(reader, vocab, to_ids, config.corpus, training, teacher)
        batches = corpus.batches(progress.position, state.shares())
        if group.device.type == "cuda":
            batches = read_ahead(pinned(batches, group.device))
        # The buffer is made by then: its time is not the arm's.
        parts, position = next(batches)
        start, written = clock() - progress.seconds, time.monotonic()
        while (used := clock() - start) < args.seconds:
            share = used / args.seconds
            up, down = (share + 1e-3) / WARM_UP, (1 - share) / args.decay
            rate = training.learning_rate * min(1, up, down)
            losses.append(train_step(state, parts, rate))
            progress.position, progress.seconds = position, clock() - start
            if progress.step % 20 == 0:
                speed = progress.words / progress.seconds
                loss = float(sum(losses)) / len(losses)  # few, if it has just been resumed
                print(f"{name}: {progress.step} steps, {progress.words:,} words, loss "
                      f"{loss:.3f}, {speed:.0f} words/s", flush=True)  # fmt: skip
            if time.monotonic() - written > 60:
                state.save(checkpoint, config)
                written = time.monotonic()
            parts, position = next(batches)
        progress.seconds = used  # with the batch that was read in vain
    save_bilm(model.cpu(), folder)
    save_head(state.head.cpu(), vocab, folder)
    checkpoint.unlink(missing_ok=True)
    return {"steps": progress.step, "words": progress.words, "seconds": progress.seconds}


def measure(weights: Path, args: argparse.Namespace) -> dict[str, float]:
    """The mean perplexity of a sample of each held-out text; F1 of names, and BLiMP, in percent."""
    found, (head, vocab) = find_weights(weights), load_head(weights)
    words = [word for word in read_words(args.data / "eval_vocab.txt") if word]
    head, vocab = restrict_head(head, vocab, words, "eval_vocab.txt")
    model = load_bilm(found).set_precision("float32", compiled=True)
    results = {}
    for name in TEXTS:
        path = args.data / "lm" / name / "valid.txt.xz"
        sentences = list(read_text(found, path, False, "en"))
        block = EncodedSentences(sentences, vocab, None, model.token_encoder.to_ids)
        results[name] = evaluate(model, head, block, max_words=args.words).mean
    elmo = probes.Elmo(str(weights))
    names = probes.measure(elmo, args.data, "entities", ["all"], PROBE_SEEDS, "dev")
    results["names"] = statistics.mean(names["all"])
    lm = LM.load(str(weights), vocab=args.data / "eval_vocab.txt")
    results["blimp"] = blimp.measure(lm, args.data, 1 / 3)["all"]["mean"]["summed"]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("data", "start", "shards", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("arms", nargs="*")
    parser.add_argument("--seconds", type=float, default=1200, help="of the processor, each arm")
    parser.add_argument("--decay", type=float, default=0.4, help="share of the time")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--words", type=int, default=60_000, help="of each held-out text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="print the results, train nothing")
    args = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    results = args.out / "results.jsonl"
    rows = [json.loads(line) for line in results.open()] if results.exists() else []
    if args.table:
        print("| arm | core-seconds | steps | words |", " | ".join(MEASURES), "|")
        print("|---|---|---|---|" + "---|" * len(MEASURES))
        for row in rows:
            cells = (f"{row[name]:.1f}" if name in row else "–" for name in MEASURES)
            print(f"| {row['arm']} | {row['seconds']:.0f} | {row['steps']:,} | {row['words']:,} |",
                  " | ".join(cells), "|")  # fmt: skip
        return
    for arm in ["start", *args.arms]:
        if any(row["arm"] == arm and row["seed"] == args.seed for row in rows):
            continue
        if arm == "start":
            found: dict[str, Any] = {"steps": 0, "words": 0, "seconds": 0.0}
            weights = args.start
        else:
            name, settings = parse(arm, args)
            name = f"{name}-{args.seed}"
            found, weights = train(name, settings, args), args.out / name
        row = {"arm": arm, "seed": args.seed, **found, **measure(weights, args)}
        print(row, flush=True)
        args.out.mkdir(parents=True, exist_ok=True)
        with results.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
