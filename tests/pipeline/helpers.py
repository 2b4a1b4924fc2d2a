"""What several of the tests in this folder need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.int8 import round_gates
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import IndexedSentences
from spacy_elmo.lm.head import save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import STATISTICS, Card
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.statistics import compute_statistics

TOLERANCE = 1e-5
CONFIG = BiLMConfig(
    filters=((1, 4), (2, 4), (3, 8)), projection_dim=8, dim=16, n_layers=2, char_dim=4
)
WIDTH, N_LAYERS = CONFIG.width, CONFIG.depth
CARD = Card(
    {
        "name": "tiny",
        "lang": "en",
        "license": "CC BY-SA 3.0",
        "sources": [{"name": "A corpus", "url": "https://example.org", "license": "CC BY-SA 3.0"}],
    },
    {"README.md": "# tiny\n\nA biLM for tests: \u00fc.\n", "LICENSE": "The licence.\n"},
)
TEXTS = [
    "The bank raised its rates. They sat on the bank of the river!",
    "",
    "Play!",
    "   \n\n ",
    "A  text \n with\t\tspaces.  And another  sentence ; does it end? Yes",
    "안녕하세요. 我们去银行。 Größe — naïve… 🎉",
    "word " * 50,
]
# The beginning of a script that measures the memory that a process takes.
PEAK = r"""
import sys
import time
from itertools import islice
from pathlib import Path

import spacy
import torch
from spacy.tokens import Doc

def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")

def peak():
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) * 1024
"""


def write_weights(
    path: Path, seed: int = 0, config: BiLMConfig = CONFIG, card: Card = CARD
) -> Path:
    """A directory with random weights."""
    torch.manual_seed(seed)
    model = BiLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.6, 0.6)
    with atomic_directory(path) as temporary:
        save_bilm(model, temporary, card)
    return path


def write_int8(path: Path) -> Path:
    """A directory with random weights whose gates are rounded."""
    save_bilm(round_gates(load_bilm(write_weights(path))), path, CARD)
    return path


def write_statistics(path: Path, sentences: Iterable[Sequence[str]]) -> None:
    """Beside weights, as of a text of these sentences."""
    words = IndexedSentences([list(sentence) for sentence in sentences])
    statistics = compute_statistics(find_weights(path).load(), words)
    (path / STATISTICS).write_bytes(statistics.to_bytes())


def write_language_model(path: Path, words: Iterable[str], card: Card = CARD) -> Path:
    """A directory with random weights and a random head over some words."""
    write_weights(path, card=card)
    vocab = Vocabulary([*SPECIALS, *dict.fromkeys(words)])
    head = SoftmaxHead(len(vocab), CONFIG.projection_dim)
    torch.nn.init.normal_(head.weight)  # far from uniform, so that a mistake shows
    save_head(head, vocab, path)
    return path


def make_nlp(
    weights: Path | str, lang: str = "en", name: str = "elmo", **settings: Any
) -> Language:
    """A pipeline of the component alone; settings go to the block that knows them."""
    nlp = spacy.blank(lang)
    add_elmo(nlp, weights, name, **settings)
    return nlp


def add_elmo(nlp: Language, weights: Path | str, name: str = "elmo", **settings: Any) -> Any:
    """Add the component, perhaps before others; settings go to the block that knows them."""

    def take(*names: str) -> dict[str, Any]:
        return {name: settings.pop(name) for name in names if name in settings}

    where, config = take("first", "last", "before", "after"), take("store", "vectors")
    mix = take("initial_weights", "gamma", "layer_norm")
    if mix:
        settings["mix"] = {"@architectures": "spacy-elmo.ScalarMix.v1", **mix}
    config["model"] = {"weights": str(weights), **settings}
    return nlp.add_pipe("elmo", name=name, config=config, **where)


def vectors_of(docs: Sequence[Doc]) -> list[np.ndarray]:
    """The tensors of Docs, whose shapes are checked."""
    for doc in docs:
        assert doc.tensor.shape == (len(doc), WIDTH)
        assert doc.tensor.dtype == np.float32
        assert np.isfinite(doc.tensor).all()
    return [doc.tensor for doc in docs]


def max_difference(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """Largest absolute difference; shapes have to agree."""
    assert [a.shape for a in ours] == [b.shape for b in theirs]
    pairs = zip(ours, theirs, strict=True)
    return max((float(np.abs(a - b).max(initial=0.0)) for a, b in pairs), default=0.0)


def finite_difference(
    function: Callable[[], float], array: np.ndarray, place: Any, step: float
) -> float:
    """The derivative of a function by one number of an array, which is left as it was."""
    before = array[place].copy()
    values = []
    for sign in (1, -1):
        array[place] = before + sign * step
        values.append(function())
    array[place] = before
    return (values[0] - values[1]) / (2 * step)
