"""Damaged and hostile files, each read in a child process of limited memory and time.

    python benchmarks/hostile.py --inputs 100000
    python benchmarks/hostile.py --only published --seed 7 --inputs 1000

Each input is one of the files that the project reads, with a seeded fault. It must load and
compute finite vectors, or end in one error of ours that names the file (or the setting of a
config). What fails is printed with its seed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import spacy
import torch
from mutations import mutate_data
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_elmo.bilm.base_weights import Card
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.find_weights import find_weights
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.own_weights import save_bilm
from spacy_elmo.bilm.published.weights import write_published
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.config_file import read_config
from spacy_elmo.pretraining.data.shards import Shards
from spacy_elmo.pretraining.run.checkpoint import load_checkpoint, read_progress
from spacy_elmo.pretraining.run.log import read_log
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.readers import tokenize_files

MEGABYTES, SECONDS, CHUNK = 700, 20, 50
TEXT = "The bank of the river .\nA bank with money .\nNobody answered .\n" * 5
CONFIG = BiLMConfig(filters=((1, 4), (2, 6)), projection_dim=6, dim=8, n_layers=2, char_dim=4)


@dataclass
class Target:
    """Files that are read together.

    Attributes:
        folder: the sound ones.
        read: reads a copy of the folder; returns what must be finite.
    """

    folder: Path
    read: Callable[[Path], torch.Tensor]


def make_targets(root: Path) -> dict[str, Target]:
    """Every kind of file that the project reads."""
    torch.manual_seed(0)
    own, published, zipped, component, run, texts = (
        root / name for name in ("own", "published", "zipped", "component", "run", "texts")
    )
    for folder in (own, published, zipped, texts):
        folder.mkdir(parents=True)
    model, vocab = BiLM(CONFIG).eval(), Vocabulary([*SPECIALS, *dict.fromkeys(TEXT.split())])
    head = SoftmaxHead(len(vocab), CONFIG.projection_dim)
    source = {"name": "A text", "url": "https://example.org", "license": "CC0"}
    card = Card({"name": "a", "lang": "en", "sources": [source]}, {"LICENSE": "CC0\n"})
    save_bilm(model, own, card)
    save_head(head, vocab, own)
    write_published(model, published, head, vocab.words)
    (published / "vocab.txt.gz").write_bytes(gzip.compress((published / "vocab.txt").read_bytes()))
    (published / "vocab.txt").unlink()
    with zipfile.ZipFile(zipped / "weights.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for file in published.iterdir():
            packed.write(file, file.name)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": str(own)}})
    nlp("Load it .")
    nlp.get_pipe("elmo").to_disk(component, exclude=["vocab"])
    (texts / "a.txt").write_text(TEXT)
    (texts / "b.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    (texts / "c.txt.xz").write_bytes(lzma.compress(TEXT.encode()))
    (texts / "d.jsonl").write_text(
        "".join(json.dumps({"text": t}) + "\n" for t in TEXT.split("\n"))
    )
    DocBin(docs=[spacy.blank("en")(t) for t in TEXT.split("\n")]).to_disk(texts / "e.spacy")
    (texts / "meta.json").write_text('{"lang": "en"}')
    pretrain(make_config(texts / "a.txt"), run, quiet=True)
    return {
        "own": Target(own, read_weights),
        "published": Target(published, read_weights),
        "zip": Target(zipped, lambda folder: read_weights(folder / "weights.zip")),
        "component": Target(component, lambda folder: read_component(nlp, folder)),
        "run": Target(run, read_run),
        "texts": Target(texts, lambda folder: read_texts(spacy.blank("en"), folder)),
    }


def make_config(text: Path) -> PretrainConfig:
    training = {"max_steps": 2, "warmup_steps": 0, "decay_steps": 0, "batch_words": 40}
    return PretrainConfig.from_dict(
        {
            "paths": {"train": str(text), "dev": str(text)},
            "model": {**CONFIG.to_dict()},
            "vocab": {"min_count": 1},
            "softmax": {"kind": "full"},
            "training": training,
        }
    )


def read_weights(path: Path) -> torch.Tensor:
    weights = find_weights(path)
    weights.config(), weights.card(), weights.check(), weights.files()
    model = weights.load()
    if weights.has_head():
        load_head(path)
    return torch.cat([part.flatten() for part in model.read([["The", "bank"], [], ["é" * 60]])[0]])


def read_component(nlp: Language, path: Path) -> torch.Tensor:
    component = nlp.create_pipe("elmo", config={"model": {"weights": "none"}})
    component.from_disk(path, exclude=["vocab"])
    doc = component(nlp.make_doc("The bank ."))
    return torch.from_numpy(doc.tensor)


def read_run(path: Path) -> torch.Tensor:
    read_log(path / "log.jsonl")
    config = read_config(path / "config.cfg")
    progress, _ = read_progress(path / "checkpoint.safetensors")
    vocab = Vocabulary.read(path / "vocab.txt")
    model, head = BiLM(CONFIG), SoftmaxHead(len(vocab), CONFIG.projection_dim)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
    modules = {"bilm": model, "head": head}
    load_checkpoint(path / "checkpoint.safetensors", modules, optimizer, torch.device("cpu"))
    assert progress.step >= 0 and config.training.max_steps > 0
    return model.lstm[0].bias


def read_texts(nlp: Language, path: Path) -> torch.Tensor:
    shards = Shards(path)
    shards.card()
    n = sum(len(words) for file in shards.files() for words in shards.read(file))
    texts = [path / "d.jsonl", path / "e.spacy"]
    return torch.tensor(float(n + sum(map(len, tokenize_files(nlp, texts, 1)))))


def attack(target: Target, room: Path, seed: int) -> str:
    """One input; "loaded", "refused", or what went wrong."""
    rng = random.Random(seed)
    shutil.rmtree(room, ignore_errors=True)
    folder = room / "deep" / "copy"
    shutil.copytree(target.folder, folder)
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    file = rng.choice(files)
    file.write_bytes(mutate_data(file, file.read_bytes(), rng))
    before = sorted(path for path in room.rglob("*"))
    try:
        result = target.read(folder)
    except (ValueError, OSError) as error:
        named = any(name in str(error) for name in (str(folder), file.name, "Config: ["))
        outcome = "refused" if named else f"an error that does not name {file.name}: {error}"
    except BaseException as error:  # of any other kind: a fault of ours
        outcome = f"{type(error).__name__} from {file.name}: {error}"
    else:
        finite = bool(torch.isfinite(result).all())
        outcome = "loaded" if finite else f"{file.name}: values that are not finite"
    written = [path for path in room.rglob("*") if path not in before]
    return f"{file.name}: wrote {written[0]}" if written else outcome


def run_child(target: Target, room: Path, seeds: range, pipe: int) -> None:
    """Some inputs in a forked process; a line for each on the pipe."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEGABYTES * 2**20,) * 2)
    torch.set_num_threads(1)
    for seed in seeds:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of computing: the machine may be busy
        signal.alarm(10 * SECONDS)
        outcome = attack(target, room, seed)
        os.write(pipe, (outcome.replace("\n", " ")[:500] + "\n").encode("utf-8", "replace"))
    os._exit(0)


def run_inputs(target: Target, room: Path, seeds: range) -> Iterator[tuple[int, str]]:
    """The outcome of each seed, whatever happens to the children."""
    done = 0
    while done < len(seeds):
        rest = seeds[done : done + CHUNK]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 1), os.dup2(devnull, 2)
            run_child(target, room, rest, writing)
        os.close(writing)
        with open(reading, encoding="utf-8") as lines:
            outcomes = [line.rstrip("\n") for line in lines]
        _, status = os.waitpid(child, 0)
        if len(outcomes) < len(rest):
            signaled = os.WIFSIGNALED(status)
            kind = signal.Signals(os.WTERMSIG(status)).name if signaled else f"exit {status}"
            is_hang = kind in ("SIGALRM", "SIGPROF")
            outcomes.append("a hang" if is_hang else f"a crash: {kind}")
        yield from zip(rest, outcomes, strict=False)
        done += len(outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    parser.add_argument("--only", help="one kind of file")
    args = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    started, bad = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        targets = make_targets(root / "sound")
        chosen = [args.only] if args.only else list(targets)
        each = math.ceil(args.inputs / len(chosen))
        for name in chosen:
            counts: Counter[str] = Counter()
            seeds = range(args.seed, args.seed + each)
            for seed, outcome in run_inputs(targets[name], root / "room", seeds):
                is_fine = outcome in ("loaded", "refused")
                counts[outcome if is_fine else "failed"] += 1
                if not is_fine:
                    bad += 1
                    print(f"{name}, seed {seed}: {outcome}", flush=True)
            print(f"{name}: {dict(counts)}", flush=True)
    print(f"{each * len(chosen):,} inputs in {time.monotonic() - started:.0f} s, {bad} failed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
