"""Do the archived implementations read what we export, and see in it what we see?

    python benchmarks/peers/exported.py [--weights en_sm] [--peers allennlp simple_elmo bilm]

Exports biLMs with `python -m spacy elmo convert`, has each peer read them in an environment of
its own, and compares all layers of all sentences with ours. The biLMs are the embedded one and that
of the tests; `speed/random_weights.py` makes others. Two that compute in single precision differ by
the rounding of both, so each, ours too, is also held against our layers in double precision:
the exit status is 1 if any differs from those by more than 1e-5. The environments take 3 GB. On
Linux set PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu: the PyTorch on PyPI wants CUDA.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from peers import OURS, read

from spacy_elmo.weights.find import load_bilm

TOLERANCE = 1e-5
PEERS = ["allennlp", "simple_elmo", "bilm"]  # the others are no ELMo
FIXTURES = Path(__file__).parents[2] / "tests/fixtures"
ENGLISH = """\
The bank of the river was steep and covered with grass .
She went to the bank to ask for a loan , but it was closed on Mondays .
When the rain stopped , the children ran out into the garden to look for snails .
It is not known who first said so .
Prices rose by 3.5 % in the second quarter , the ministry said on Tuesday ."""
# The words of the boundaries, one of no bytes, half of a pair of surrogates, and what vocabularies
# treat as something else than a word.
TRAPS = ["<S>", "", "x\ud83dy", "</S>", "<UNK>", "\xa0", "!!!MAXTERMID"]


def export(weights: str, path: Path, layout: str = "published") -> None:
    command = [sys.executable, "-m", "spacy", "elmo", "convert", weights, str(path)]
    subprocess.run([*command, "--to", layout], check=True, stdout=subprocess.DEVNULL)


@torch.inference_mode()
def read_exactly(weights: str, sentences: list[list[str]]) -> dict[str, np.ndarray]:
    """Our layers in double precision, by the names that `reader` gives them."""
    bilm = load_bilm(weights).double()
    layers, _ = bilm.read(sentences, bilm.initial_state("zero"))
    return {f"s{i}": x.numpy() for i, x in enumerate(layers)}


def difference(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> float:
    """The largest, in any layer of any sentence."""
    if {name: a[name].shape for name in a} != {name: b[name].shape for name in b}:
        return float("inf")
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", nargs="*", default=["en_sm"], help="beside those made here")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    arguments = parser.parse_args()

    sentences = json.loads((FIXTURES / "sentences.json").read_text("utf-8"))
    sentences += [line.split() for line in ENGLISH.split("\n")] + [TRAPS]
    failed = False
    print("| weights | read by | sentences | from ours | from ours in double precision |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        file, out = room / "sentences.json", room / "layers.npz"
        file.write_text(json.dumps(sentences))
        originals = {weights: weights for weights in arguments.weights}
        golden = originals["golden_tiny"] = str(room / "golden_tiny")
        export(str(FIXTURES / "golden_tiny"), Path(golden), "native")
        for i, (title, original) in enumerate(originals.items()):
            exported = room / f"exported{i}"
            export(original, exported)
            exact = read_exactly(original, sentences)
            for peer in (OURS, *arguments.peers):
                weights = original if peer == OURS else str(exported)
                # In batches of 4: sentences of unequal length, and states to be reset.
                found = read(peer, weights, file, out=out, batch_size=4)
                with np.load(out) as arrays:
                    layers = dict(arrays)
                if peer == OURS:
                    ours = layers
                error = difference(layers, exact)
                failed |= not error <= TOLERANCE
                print(
                    f"| {title} | {peer} {found['version']} | {len(sentences)} "
                    f"| {difference(layers, ours):.1e} | {error:.1e} |",
                    flush=True,
                )
    sys.exit(failed)


if __name__ == "__main__":
    main()
