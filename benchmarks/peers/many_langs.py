"""Does a converted model of ELMoForManyLangs compute what the original computes?

    python benchmarks/peers/many_langs.py [MODEL] [--golden OUT]

MODEL is a directory of its published files (encoder.pkl, …); without one, tiny random weights are
made. The original reads sentences in an environment of its own, each from a reset state; ours reads
what `elmo convert` makes of the model. Printed is the largest difference of any value of any layer;
the exit status is 1 if it is above 1e-5. ``--golden`` keeps the tiny model with the original's
layers: tests/fixtures/many_langs_tiny was made by it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from peers import CACHE, HERE, python_of

SENTENCES = [
    ["Two", "cats", "sat", "on", "a", "mat", "."],
    ["cats"],
    ["naïve", "Füße", "unknownwordofmanycharacters", "漢", "a"],
    ["<eos>", "mat", "<unk>", "Two", "a", "b"],
]
SIZES = {
    "encoder": {
        "name": "elmo", "projection_dim": 6, "cell_clip": 3, "proj_clip": 3, "dim": 8,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn", "activation": "relu", "filters": [[1, 4], [2, 4], [3, 6]], "n_highway": 2,
        "word_dim": 5, "char_dim": 4, "max_characters_per_token": 12,
    },
    "classifier": {"name": "sampled_softmax", "n_samples": 3},
    "dropout": 0.1,
}  # fmt: skip
SPECIAL = ["<oov>", "<pad>"]


def make_model(path: Path) -> None:
    """Write tiny random weights; values are large enough to meet the clips."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    encoder, embedder = SIZES["encoder"], SIZES["token_embedder"]
    P, D = encoder["projection_dim"], encoder["dim"]
    C, E = embedder["char_dim"], embedder["word_dim"]
    F = sum(number for _, number in embedder["filters"])
    characters = ["<bos>", "<eos>", *SPECIAL, "<bow>", "<eow>", *"abcdefgimnostuwTF.ïüß"]
    words = [*SPECIAL, "<bos>", "<eos>", "cats", "a", ".", "Füße", "unknownwor"]
    path.mkdir(parents=True, exist_ok=True)
    for name, entries in (("char.dic", characters), ("word.dic", words)):
        lines = (f"{entry}\t{i}\n" for i, entry in enumerate(entries))
        (path / name).write_text("".join(lines), "utf-8")
    tensors = {
        "word_emb_layer.embedding.weight": random(len(words), E),
        "char_emb_layer.embedding.weight": random(len(characters), C),
        "projection.weight": random(P, E + F) / 4,
        "projection.bias": random(P),
    }
    for i, (width, number) in enumerate(embedder["filters"]):
        tensors[f"convolutions.{i}.weight"] = random(number, C, width) / 2
        tensors[f"convolutions.{i}.bias"] = random(number)
    for i in range(embedder["n_highway"]):
        tensors[f"highways._layers.{i}.weight"] = random(2 * F, F) / 2
        tensors[f"highways._layers.{i}.bias"] = random(2 * F)
    torch.save(tensors, path / "token_embedder.pkl")
    tensors = {}
    for name in ("forward_layer", "backward_layer"):
        for k in range(encoder["n_layers"]):
            layer = f"{name}_{k}"
            tensors[f"{layer}.input_linearity.weight"] = random(4 * D, P) / 4
            tensors[f"{layer}.state_linearity.weight"] = random(4 * D, P) / 4
            tensors[f"{layer}.state_linearity.bias"] = random(4 * D)
            tensors[f"{layer}.state_projection.weight"] = 1.5 * random(P, D)
    torch.save(tensors, path / "encoder.pkl")
    (path / "sizes.json").write_text(json.dumps(SIZES, indent=1) + "\n")
    (path / "config.json").write_text(json.dumps({"config_path": "/elsewhere/sizes.json"}) + "\n")


def ours(model: Path, folder: Path) -> list[np.ndarray]:
    """The layers of what `elmo convert` makes of the model, in the package's way."""
    import spacy
    from spacy.tokens import Doc

    command = [sys.executable, "-m", "spacy", "elmo", "convert", str(model), str(folder / "ours")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    nlp = spacy.blank("xx")
    block = {"@architectures": "spacy-elmo.Elmo.v1", "weights": str(folder / "ours")}
    nlp.add_pipe("elmo", config={"store": ["layers"], "model": block})
    docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in json.loads(
        (folder / "sentences.json").read_text("utf-8")))  # fmt: skip
    return [doc._.elmo_layers for doc in docs]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--golden", type=Path, help="directory to keep the tiny model in")
    parser.add_argument("--python", help="an interpreter that has the original (default: made)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = args.model or folder / "model"
        if args.model is None:
            make_model(model)
        (folder / "sentences.json").write_text(json.dumps(SENTENCES), "utf-8")
        python = args.python or python_of("elmoformanylangs", CACHE)
        read = [python, str(HERE / "read_elmoformanylangs.py"), str(model)]
        subprocess.run(
            [*read, str(folder / "sentences.json"), str(folder / "theirs.npz")], check=True
        )
        theirs = np.load(folder / "theirs.npz")
        difference = max(
            float(np.abs(x - theirs[f"s{i}"]).max()) for i, x in enumerate(ours(model, folder))
        )
        if args.golden is not None:
            shutil.copytree(model, args.golden, dirs_exist_ok=True)
            shutil.copy(folder / "sentences.json", args.golden / "sentences.json")
            shutil.copy(folder / "theirs.npz", args.golden / "layers.npz")
    print(f"{len(SENTENCES)} sentences, largest difference {difference:.1e}")
    return difference > 1e-5


if __name__ == "__main__":
    sys.exit(main())
