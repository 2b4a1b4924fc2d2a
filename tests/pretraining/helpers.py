"""What several of the tests in this folder need."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from confection import Config
from safetensors.torch import load_file

from spacy_elmo.bilm.characters import BOS, EOS, CharacterIds
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import id_tensor
from spacy_elmo.lm.encoded_sentences import EncodedSentences, SentenceBatch
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining import train as loop
from spacy_elmo.pretraining.checkpoint import Progress
from spacy_elmo.pretraining.config import PretrainConfig, TrainingSettings

ANIMALS = {"dogs": "bark", "cows": "moo", "cats": "purr", "owls": "hoot"}
# Each sentence is as likely as the others, and only its first word is free in either direction:
# of the four predictions three are certain, one is of four equal chances.
SENTENCES = [[animal, sound, "."] for animal, sound in ANIMALS.items()]
BEST_PERPLEXITY = 4 ** (1 / 4)

PROSE = """\
The old clock in the hall struck nine , and nobody came .
Rain fell on the harbour all night long .
She counted the boats twice and wrote the number down .
" Seventeen , " she said , " and one of them is ours . "
Nobody answered .
He had walked along the river bank since dawn , looking for a place to cross .
The bank had closed at four .
No .
A letter lay on the table , unopened , its stamp half torn away .
They would read it in the morning , or never .
"""

MODEL: dict[str, Any] = {
    "filters": [[1, 4], [2, 8]],
    "char_dim": 4,
    "n_highway": 1,
    "projection_dim": 8,
    "dim": 16,
    "n_layers": 2,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "model": MODEL,
    "vocab": {"min_count": 1},
    "softmax": {"kind": "full"},
    "training": {
        "batch_words": 40,
        "max_steps": 20,
        "learning_rate": 0.02,
        "warmup_steps": 2,
        "decay_steps": 5,
        "eval_every": 10,
        "log_every": 5,
    },
}


def make_config(
    train: Path | None = None, dev: Path | None = None, changes: dict[str, Any] | None = None
) -> PretrainConfig:
    """A tiny run; `changes` are settings by ``section.name``."""
    settings = deepcopy(SETTINGS)
    settings["paths"] = {"train": train and str(train), "dev": dev and str(dev)}
    for key, value in (changes or {}).items():
        section, name = key.split(".")
        settings.setdefault(section, {})[name] = value
    return PretrainConfig.from_dict(settings)


def config_text(config: PretrainConfig) -> str:
    """A spaCy config, to which blocks can be added."""
    data = config.to_dict()
    if data["training"]["teacher"] is None:
        del data["training"]["teacher"]  # the block may follow
    return Config({k: v for k, v in data.items() if v}).to_str() + "\n"


def write_config(path: Path, config: PretrainConfig) -> Path:
    path.write_text(config_text(config), encoding="utf-8")
    return path


def write_text(path: Path, sentences: Iterable[Sequence[str]]) -> Path:
    path.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    return path


def prose() -> list[list[str]]:
    return [line.split() for line in PROSE.splitlines()]


def make_block(
    sentences: Iterable[Sequence[str]], vocab: Vocabulary, max_words: int = 50
) -> EncodedSentences:
    return EncodedSentences(sentences, vocab, max_words=max_words, to_ids=CharacterIds(2))


def make_vocab(words: Iterable[str]) -> Vocabulary:
    return Vocabulary([*SPECIALS, *dict.fromkeys(words)])


def make_model(n_words: int, seed: int = 0, **changes: Any) -> tuple[BiLM, SoftmaxHead]:
    torch.manual_seed(seed)
    config = BiLMConfig.from_dict({**MODEL, **changes})
    return BiLM(config).eval(), SoftmaxHead(n_words, config.projection_dim)


def log_probabilities(
    model: BiLM, head: SoftmaxHead, words: Sequence[str], ends: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """From the definition, in double precision: for each word of a sentence what the forward and
    the backward language model expect there, ``(n_words, V)`` each, in nats; with the sentence's
    end, and its start, if ``ends``."""
    weight, bias = (p.detach().numpy().astype(np.float64) for p in (head.weight, head.bias))
    tokens = [BOS, *words, EOS]
    with torch.no_grad():
        x = model.char_cnn(id_tensor(*CharacterIds(max_width=2)(tokens)))
        layers, _ = model(x, torch.arange(len(tokens)), [len(tokens)])
    top = layers[-1].numpy().astype(np.float64)
    half = top.shape[1] // 2
    n = len(words) + ends
    logits = top[:n, :half] @ weight.T + bias, top[len(top) - n :, half:] @ weight.T + bias
    forward, backward = (x - np.log(np.exp(x).sum(axis=1, keepdims=True)) for x in logits)
    return forward, backward


def stop_after(monkeypatch: pytest.MonkeyPatch, step: int, number: int = signal.SIGINT) -> None:
    """Send a signal while this step is being taken."""
    learning_rate = loop.learning_rate

    def wrapped(settings: TrainingSettings, progress: Progress) -> float:
        if progress.step + 1 == step:
            signal.raise_signal(number)
        return learning_rate(settings, progress)

    monkeypatch.setattr(loop, "learning_rate", wrapped)


def refuses(said: str, config: PretrainConfig, out: Path, resume: bool = False) -> None:
    """A run ends with an error that says this."""
    with pytest.raises(ValueError, match=said):
        loop.pretrain(config, out, resume=resume, quiet=True)


def same_weights(one: Path, other: Path) -> bool:
    """Whether two files hold the same tensors, to the last bit."""
    a, b = load_file(one), load_file(other)
    assert a.keys() == b.keys()
    return all(torch.equal(a[name], b[name]) for name in a)


def contents(directory: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def same_batches(one: SentenceBatch, other: SentenceBatch) -> bool:
    return one.lengths == other.lengths and all(
        torch.equal(getattr(one, name), getattr(other, name))
        for name in ("ids", "tokens", "targets")
    )
