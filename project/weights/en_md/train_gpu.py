"""The training of en_md on one GPU, for a given time; see README.md.

    PYTHONPATH=CLONE:CLONE/project/scripts python train_gpu.py WORK --seconds 600

CLONE is the project at commit c7be6fe. WORK has text/NN.ppmd (sentences, compressed by
pyppmd; more may come while it trains), dev.txt, the head's words (vocab.txt) and biases (bias.npy)
as widen.py makes them, and minilm/: config.json and tokenizer.json of all-MiniLM-L6-v2, and
weights.npz (matrices in int8, the scales of their rows beside them, as NAME|s). WORK/deadline, if
it is there, moves the end, in seconds of time.time(). Writes log.jsonl and, in the end, out/:
weights and head in half precision.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import types
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from spacy_elmo.bilm import lstm_layer
from spacy_elmo.bilm.characters import CharacterIds
from spacy_elmo.lm.encoded_sentences import EncodedSentences, SentenceBatch
from spacy_elmo.lm.forward import hidden_states, losses
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.softmax import LogUniformSampler, SoftmaxHead
from spacy_elmo.lm.vocabulary import Vocabulary
from spacy_elmo.pretraining.train_step import BiLMLoss

stub = types.ModuleType("confection")  # release.py needs it, but nothing that is used here
stub.Config = dict
sys.modules.setdefault("confection", stub)
import release  # noqa: E402
import widen  # noqa: E402

from spacy_elmo.weights.find import find_weights, load_bilm  # noqa: E402

LAYERS, SIZE, MOST, CLS, SEP = (2, 4, 6), 128, 254, 101, 102


@dataclass
class Taught:
    """A batch; ids (B, n) of pieces and the token of each (N for none), or None."""

    batch: SentenceBatch
    pieces: torch.Tensor | None
    words: torch.Tensor | None
    tokens: torch.Tensor | None

    def pin_memory(self):
        return Taught(
            self.batch.pin_memory(),
            *(
                None if t is None else t.pin_memory()
                for t in (self.pieces, self.words, self.tokens)
            ),
        )


def make_start(work: Path):
    found = find_weights("en_sm")
    model, (head, vocab), config = load_bilm(found), load_head(found), found.config()
    release.rescale(model.requires_grad_(False), head.requires_grad_(False), 0.5, 0.125)
    words = Vocabulary((work / "vocab.txt").read_text("utf8").split("\n")[:65000])
    n = sum(k for _, k in config.filters)
    filters = [(w, round(k * 1024 / n)) for w, k in config.filters]
    large = widen.widen(model, 1024, 256, filters)
    old = np.array([vocab[word] for word in words.words])
    outputs = widen.copies(head.weight.shape[1], 256)
    out = SoftmaxHead(len(words), 256)
    with torch.no_grad():
        out.weight.copy_(widen.read_by(head.weight, outputs, np.random.default_rng(0))[old])
        out.bias.copy_(torch.from_numpy(np.load(work / "bias.npy")))
    return large.requires_grad_(True), out.requires_grad_(True), words


class Batches(IterableDataset):
    def __init__(self, work, vocab, to_ids, batch_words, every):
        self.work, self.vocab, self.to_ids, self.batch_words, self.every = (
            work,
            vocab,
            to_ids,
            batch_words,
            every,
        )

    def __iter__(self):
        torch.set_num_threads(1)
        info = torch.utils.data.get_worker_info()
        me, n = (info.id, info.num_workers) if info else (0, 1)
        import pyppmd
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.work / "minilm/tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        reads: dict[str, int] = {}
        rng = np.random.default_rng([7, me])
        while True:
            files = sorted(self.work.glob("text/*.ppmd"))
            here = [f for i, f in enumerate(files) if int(f.stem) % n == me] or files
            fewest = min(reads.get(f.name, 0) for f in here)
            here = [f for f in here if reads.get(f.name, 0) == fewest]
            file = here[rng.integers(len(here))]
            reads[file.name] = fewest + 1
            try:
                text = pyppmd.decompress(file.read_bytes(), max_order=7, mem_size=512 << 20).decode(
                    "utf8"
                )
            except ValueError as error:
                print(file.name, error, flush=True)
                reads[file.name] = 10**6
                continue
            sentences = [line.split(" ") for line in text.split("\n") if line]
            del text
            encoded = EncodedSentences(sentences, self.vocab, 100, self.to_ids)
            del sentences
            found = tokenizer.encode_batch(encoded.types, add_special_tokens=False)
            piece_lists = [e.ids for e in found]
            del found
            piece_lists[0], piece_lists[1] = [CLS], [SEP]
            counts = np.array([len(p) for p in piece_lists])
            flat = np.fromiter((i for p in piece_lists for i in p), dtype=np.int32)
            starts = np.cumsum(counts) - counts
            for number, chosen in enumerate(encoded.plan(self.batch_words, rng)):
                batch = encoded.batch(chosen)
                extra = (None, None, None)
                if number % self.every == 0:
                    extra = self.teach(encoded, chosen, counts, flat, starts)
                yield Taught(batch, *extra)

    def teach(self, encoded, chosen, counts, flat, starts):
        types, lengths = encoded.select(chosen)
        lengths = np.asarray(lengths)
        c = counts[types]
        N = len(types)
        token = np.repeat(np.arange(N), c)
        first = np.repeat(starts[types] - np.cumsum(c) + c, c)
        ids = flat[first + np.arange(len(first))]
        row_of_token = np.repeat(np.arange(len(lengths)), lengths)
        row = row_of_token[token]
        per_row = np.bincount(row, minlength=len(lengths))
        pos = np.arange(len(row)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
        keep = pos < MOST
        matrix = np.zeros((len(lengths), min(MOST, int(per_row.max()))), dtype=np.int64)
        words = np.full(matrix.shape, N, dtype=np.int64)
        matrix[row[keep], pos[keep]] = ids[keep]
        is_word = types > 1
        words[row[keep], pos[keep]] = np.where(is_word[token[keep]], token[keep], N)
        have = np.bincount(words.ravel(), minlength=N + 1)[:N] > 0
        return (
            torch.from_numpy(matrix),
            torch.from_numpy(words),
            torch.from_numpy(np.flatnonzero(have)),
        )


def load_teacher(path: Path, device):
    from transformers import BertConfig, BertModel

    config = BertConfig.from_json_file(str(path / "config.json"))
    model = BertModel(config, add_pooling_layer=False)
    z = np.load(path / "weights.npz")
    state = {}
    for name in z.files:
        if name.endswith("|s"):
            continue
        a = z[name]
        state[name] = torch.from_numpy(
            a.astype(np.float32) * z[name + "|s"]
            if name + "|s" in z.files
            else a.astype(np.float32)
        )
    missing, unexpected = model.load_state_dict(state, strict=False)
    print("teacher: missing", missing, "unexpected", len(unexpected), flush=True)
    return model.eval().to(device).requires_grad_(False)


class Teacher:
    def __init__(self, path, device):
        self.model, self.device, self.map, self.sample = (
            load_teacher(path, device),
            device,
            None,
            [],
        )

    @torch.no_grad()
    def vectors(self, taught: Taught):
        ids, words, tokens = (
            t.to(self.device, non_blocking=True)
            for t in (taught.pieces, taught.words, taught.tokens)
        )
        N = len(taught.batch.tokens)
        with torch.autocast(self.device.type, torch.bfloat16):
            found = self.model(
                ids, attention_mask=(ids != 0).long(), output_hidden_states=True
            ).hidden_states
        layers = torch.cat([found[i] for i in LAYERS], -1).float().flatten(0, 1)
        target = words.flatten()
        sums = layers.new_zeros(N + 1, layers.shape[1]).index_add(0, target, layers)
        n = layers.new_zeros(N + 1).index_add(
            0, target, torch.ones_like(target, dtype=torch.float32)
        )
        x = (sums / n.clamp(min=1)[:, None])[tokens]
        if self.map is None:
            self.sample.append(x)
            if sum(map(len, self.sample)) < 100_000 and self.device.type == "cuda":
                return None
            s = torch.cat(self.sample)
            scale = torch.cat([p.norm(dim=1).mean().expand(384) for p in s.split(384, 1)])
            y = s / scale
            mean = y.mean(0)
            _, v = torch.linalg.eigh((y - mean).T.double() @ (y - mean).double())
            self.map = scale, mean, v.flip(1)[:, :SIZE].float()
            self.sample = []
        scale, mean, components = self.map
        return (x / scale - mean) @ components, tokens


@torch.no_grad()
def evaluate(model, head, encoded, device):
    model.eval()
    total, n = torch.zeros((), device=device, dtype=torch.float64), 0
    for chosen in encoded.plan(8192):
        read = hidden_states(model, encoded.batch(chosen).to(device))
        f, b = losses(head, read)
        total += f.double().sum() + b.double().sum()
        n += len(f) + len(b)
    model.train()
    return math.exp(float(total) / n)


def save(model, head, out: Path):
    out.mkdir(exist_ok=True)
    state = {f"bilm.{k}": v for k, v in model.state_dict().items()} | {
        f"head.{k}": v for k, v in head.state_dict().items()
    }
    data, index = [], {}
    at = 0
    for name, t in state.items():
        a = t.detach().half().cpu().numpy().tobytes()
        index[name] = [at, list(t.shape)]
        data.append(a)
        at += len(a)
    blob = b"".join(data)
    size = 16_000_000
    for i in range(0, len(blob), size):
        (out / f"part{i // size}").write_bytes(blob[i : i + size])
    (out / "index.json").write_text(json.dumps(index))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("work", type=Path)
    p.add_argument("--seconds", type=float, default=690)
    p.add_argument("--device", default="cuda")
    p.add_argument("--batch-words", type=int, default=32768)
    p.add_argument("--candidates", type=int, default=8192)
    p.add_argument("--rate", type=float, default=0.004)
    p.add_argument("--every", type=int, default=2)
    p.add_argument("--workers", type=int, default=8)
    a = p.parse_args()
    work, device = a.work, torch.device(a.device)
    started = time.time()
    log = (work / "log.jsonl").open("a", buffering=1)

    def say(**kw):
        log.write(json.dumps({"t": round(time.time() - started, 1), **kw}) + "\n")
        print(kw, flush=True)

    torch.multiprocessing.set_sharing_strategy("file_system")
    model, head, vocab = make_start(work)
    to_ids = CharacterIds(model.char_cnn.to_ids.max_width, 50)
    loader = DataLoader(
        Batches(work, vocab, to_ids, a.batch_words, a.every),
        batch_size=None,
        num_workers=a.workers,
        prefetch_factor=6 if a.workers else None,
        pin_memory=device.type == "cuda",
    )
    stream = iter(loader)  # workers start before CUDA does
    say(start="made")
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    lstm_layer.switch_off_tf32 = lambda: None
    dev = EncodedSentences(
        [line.split(" ") for line in (work / "dev.txt").read_text("utf8").split("\n") if line],
        vocab,
        100,
        to_ids,
    )
    model.to(device).train()
    student = torch.nn.Linear(3 * 512, SIZE)
    loss_of = BiLMLoss(model, head, 0.0, None, student, 1.0).to(device)
    sampler = LogUniformSampler(len(vocab), a.candidates).to(device)
    teacher = Teacher(work / "minilm", device)
    parameters = list(loss_of.parameters())
    optimizer = torch.optim.Adam(parameters, betas=(0.9, 0.99), fused=device.type == "cuda")
    say(dev=evaluate(model, head, dev, device))
    first = next(stream)
    say(first_batch=len(first.batch.tokens))
    if device.type == "cuda":  # which LSTM is faster here?

        def run(mixed, batch):
            rng = np.random.default_rng(0)
            with torch.autocast(device.type, torch.bfloat16, mixed):
                mean = loss_of(batch, sampler.sample(rng))
            mean.backward()
            loss_of.zero_grad()

        times = {}
        b = first.batch.to(device)
        for mixed in (False, True):
            for i in range(8):
                if i == 3:
                    torch.cuda.synchronize()
                    t = time.time()
                run(mixed, b)
            torch.cuda.synchronize()
            times[mixed] = (time.time() - t) / 5
        say(
            seconds_tf32_cudnn=times[False],
            seconds_bf16_operators=times[True],
            tokens=len(b.tokens),
        )
        mixed = times[True] < 0.8 * times[False]
    else:
        mixed = False
    begin, end = time.time(), time.time() + a.seconds - (time.time() - started)
    words, step, kept = 0, 0, []
    t_log, w_log, waited = time.time(), 0, 0.0
    deadline = work / "deadline"
    next_dev = 0.25
    while True:
        now = time.time()
        if step % 20 == 0 and deadline.exists():
            end = float(deadline.read_text())
        part = (now - begin) / (end - begin)
        if part >= 1:
            break
        rate = a.rate * min(1.0, part / 0.03, 2 * (1 - part))
        taught = next(stream)
        waited += time.time() - now
        batch = taught.batch.to(device)
        if taught.pieces is not None:
            found = teacher.vectors(taught)
            if found is not None:
                batch = replace(batch, lessons=found)
        rng = np.random.default_rng([3, step])
        candidates = sampler.sample(rng)
        with torch.autocast(device.type, torch.bfloat16, mixed):
            loss = loss_of(batch, candidates)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        step += 1
        words += taught.batch.n_words
        kept.append(loss.detach())
        if step % 100 == 0 or step in (5, 20):
            value = float(torch.stack(kept).mean())
            kept.clear()
            now = time.time()
            say(
                step=step,
                words=words,
                loss=value,
                rate=rate,
                wps=(words - w_log) / (now - t_log),
                waited=round(waited, 2),
            )
            t_log, w_log, waited = now, words, 0.0
            if not math.isfinite(value):
                say(error="not finite")
                break
            if part > next_dev:
                next_dev += 0.25
                say(dev=evaluate(model, head, dev, device), step=step)
                save(model, head, work / "snap.tmp")
                os.system(f"rm -rf {work}/snap; mv {work}/snap.tmp {work}/snap")
    say(end=step, words=words)
    save(model, head, work / "out.tmp")
    os.rename(work / "out.tmp", work / "out")
    say(
        dev=evaluate(model, head, dev, device),
        peak=torch.cuda.max_memory_allocated() if device.type == "cuda" else 0,
    )
    (work / "finished").write_text("")
    os._exit(0)


if __name__ == "__main__":
    main()
