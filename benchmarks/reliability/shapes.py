"""Random sizes, weights and sentences, which every instruction set reads as PyTorch's operators do.

    python benchmarks/reliability/hostile.py --only shapes --inputs 10000

Each input is a biLM of random sizes. Each instruction set of this CPU must give the same bits, and
PyTorch's operators the same vectors but for their rounding. Of three inputs one has a tensor or a
packing that is broken: it must end in a ValueError, with every instruction set.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.int8 import round_gates
from spacy_elmo.bilm.kernel.library import VARIABLE, instruction_sets, load_kernel, open_library
from spacy_elmo.bilm.model import BiLM, State
from spacy_elmo.bilm.sentence_batches import Packing

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 130, 200)


def make_bilm(rng: random.Random) -> BiLM:
    """Of any sizes, its weights as float16, float32 or int8."""
    P, most = rng.choice(SIZES), rng.choice((10, 20, 50))
    widths = rng.sample(range(1, 8), rng.randint(1, 4))
    config = BiLMConfig(
        tuple((width, rng.choice(SIZES)) for width in widths),
        P,
        max(P, rng.choice(SIZES)),
        rng.randint(1, 3),
        char_dim=rng.randint(1, 20),
        activation=rng.choice(("relu", "tanh")),
        n_highway=rng.randint(0, 2),
        cell_clip=rng.choice((None, 0.3, 3.0)),
        proj_clip=rng.choice((None, 0.3, 3.0)),
        use_skip_connections=rng.random() < 0.5,
        max_characters_per_token=most,
    )
    bilm, kind = BiLM(config).eval(), rng.choice(("half", "single", "int8"))
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.mul_(rng.choice((0.0, 0.5, 1.0, 1.0, 1.5)))
            if kind == "half":
                parameter.copy_(parameter.half())
    return round_gates(bilm) if kind == "int8" else bilm


def make_sentences(rng: random.Random) -> list[list[str]]:
    """None to 150, of 0 to 80 words."""
    words = ["".join(rng.choices("abcé강🙂", k=rng.randint(0, 60))) for _ in range(40)]
    longest = rng.choice((1, 3, 20, 80))
    n = rng.choice((0, 1, 1, 2, 10, 40, 150 if longest < 80 else 20))
    return [rng.choices(words, k=rng.randint(0, longest)) for _ in range(n)]


def make_state(config: BiLMConfig, rng: random.Random) -> State:
    sizes = config.projection_dim, config.dim
    h, c = (torch.randn(config.n_layers, 2, 1, n) * rng.choice((0.0, 0.5)) for n in sizes)
    return h, c


def kernels() -> Iterator[str]:
    """The instruction sets of this CPU, each in use while it is named."""
    library, reason = open_library()
    if library is None:
        raise RuntimeError(reason)
    for name in instruction_sets(library):
        use(name)
        yield name


def use(name: str) -> None:
    os.environ[VARIABLE] = name
    load_kernel.cache_clear()


def break_one(given: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The inputs of a layer with one of them broken."""
    broken, name = dict(given), rng.choice(("x", "h", "c", "packing"))
    if name == "packing":
        packing = broken["packing"]
        sizes: Sequence[int] = packing.batch_sizes
        packing.batch_sizes = rng.choice(
            (
                [],
                [*sizes, 0],
                [*sizes, -1, 1],
                [*sizes[:-1], sizes[-1] + 10**6],
                [1, *sizes, 1000],
                [sizes[0] + 1, *sizes[1:]],
                sizes[:-1],
                [n * 1000 for n in sizes],
            )
        )
        return broken
    tensor = broken[name]
    fault = rng.randrange(6)
    if fault == 0:
        broken[name] = tensor.to(rng.choice((torch.float64, torch.float16, torch.int8)))
    elif fault == 1:
        broken[name] = tensor[0]
    elif fault == 2:
        broken[name] = tensor.new_zeros(0)
    else:
        shape = list(tensor.shape)
        shape[fault - 3] += rng.choice((-1, 1, 100))
        broken[name] = tensor.new_zeros(shape)
    return broken


@torch.no_grad()
def is_refused(bilm: BiLM, seed: int) -> bool:
    """True if each instruction set refuses broken inputs of a layer, and ids of no character."""
    for _ in kernels():
        rng = random.Random(seed)
        encode, layers, _ = bilm.parts()
        lengths = [rng.randint(1, 9) for _ in range(rng.randint(1, 9))]
        packing, n = Packing(lengths), len(lengths)
        P, D = bilm.config.projection_dim, bilm.config.dim
        given = {
            "x": torch.randn(2, sum(lengths), P),
            "packing": packing,
            "h": torch.randn(2, n, P),
            "c": torch.randn(2, n, D),
        }
        wrong = torch.full((rng.randint(1, 9), 10), rng.choice((0, -1, 262, 2**40)))
        ids = rng.choice((wrong, torch.ones(3, 10, dtype=torch.int32), torch.ones(3, 10)))
        for function, arguments in (
            (layers[0], break_one(given, rng).values()),
            (bilm.lstm[0], break_one(given, rng).values()),  # as in training
            (encode, (ids,)),
        ):
            try:
                function(*arguments)
            except ValueError:
                continue
            return False
    return True


@torch.no_grad()
def compare(bilm: BiLM, rng: random.Random) -> str:
    """ "equal", or what differs."""
    sentences, batch_words = make_sentences(rng), rng.choice((1, 30, 500))
    state = make_state(bilm.config, rng)

    def read() -> list[torch.Tensor]:
        bilm.clear_caches()
        layers, end = bilm.read(sentences, state, batch_words)
        return [*layers, *end]

    first: list[torch.Tensor] = []
    for name in kernels():
        found = read()
        if first and not all(map(torch.equal, found, first)):
            return f"{name} computes other numbers than the set before"
        first = found
    use("none")
    for ours, theirs in zip(first, read(), strict=True):
        if ours.shape != theirs.shape or not ours.isfinite().all():
            return f"shapes {tuple(ours.shape)}, {tuple(theirs.shape)}, or no numbers"
        distance = float((ours - theirs).norm())
        if distance > (0.02 if bilm.config.int8 else 1e-5) * float(theirs.norm()) + 1e-5:
            return f"PyTorch's operators are {distance} away of {theirs.norm()}"
    return "equal"


def attack(seed: int) -> str:
    """One input; "equal", "refused", or what went wrong."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    try:
        bilm = make_bilm(rng)
        if seed % 3 == 1:
            return "refused" if is_refused(bilm, seed) else "read what is broken"
        return compare(bilm, rng)
    except Exception as error:
        return repr(error)
