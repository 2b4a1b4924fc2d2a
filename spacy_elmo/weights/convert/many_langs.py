"""Reads biLMs of ELMoForManyLangs (Che et al. 2018).

A directory has ``config.json``, which names another file with the sizes of the network, the
dictionaries ``char.dic`` and ``word.dic``, and two pickled state dicts, ``token_embedder.pkl`` and
``encoder.pkl``. PyTorch reads these with ``weights_only``, which runs no code in them.

The network is ELMo's, except for the token encoder (see `CharWordCNN`) and the forget gate, to
which nothing is added. The original implementation carries the LSTM state from batch to batch; ours
starts each sentence from zero, as its first batch does.
"""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

import torch

from ...bilm.char_word_cnn import pack_words
from ...bilm.config import BiLMConfig
from ...bilm.lstm_layer import FORGET_BIAS
from ...bilm.model import BiLM
from ...util.files import members, naming_errors, read_json
from ..layout import CONFIG
from ..tensors import build

ENCODER, EMBEDDER = "encoder.pkl", "token_embedder.pkl"
CHARACTERS, WORDS = "char.dic", "word.dic"
EMBEDDINGS = {"char_emb_layer.embedding": "embedding", "word_emb_layer.embedding": "word_embedding"}
CHAR_CNN = ("filters", "char_dim", "activation", "n_highway", "max_characters_per_token")
LSTM = {
    "weight_ih": "input_linearity.weight",
    "weight_hh": "state_linearity.weight",
    "bias": "state_linearity.bias",
    "weight_hr": "state_projection.weight",
}
SPACE = "\u3000"  # the entry in a line with only an id, where it was stripped
# The sizes of all published models, whose config.json names a file in the original package.
SIZES = Path(__file__).with_name("cnn_50_100_512_4096_sample.json")


def is_many_langs(path: Path) -> bool:
    """Tell if a directory has at least two files of this format."""
    return sum((path / name).is_file() for name in (ENCODER, EMBEDDER, CHARACTERS, WORDS)) > 1


def load(path: Path) -> BiLM:
    """Load the biLM in a directory, in float32, in evaluation mode.

    Raises:
        ValueError: a file is missing or damaged, or the biLM cannot be converted.
    """
    config = read_config(path)
    embedder, encoder = read_tensors(path / EMBEDDER), read_tensors(path / ENCODER)
    with naming_errors("the weights of", str(path)):
        parameters = to_parameters(config, embedder, encoder)
    parameters["char_cnn.characters"] = pack_words(read_entries(path / CHARACTERS))
    parameters["char_cnn.words"] = pack_words(read_entries(path / WORDS))
    return build(config, str(path), parameters)


def read_config(path: Path) -> BiLMConfig:
    """Read the config of the biLM in a directory."""
    # It is often a path on the machine of the training, with either kind of slashes.
    name = PureWindowsPath(str(read_json(path / CONFIG).get("config_path") or SIZES.name)).name
    file = SIZES if name == SIZES.name and not (path / name).exists() else path / name
    data = read_json(file)
    n_characters, n_words = (len(read_entries(path / name)) for name in (CHARACTERS, WORDS))
    with naming_errors("the sizes of the network", file):
        encoder, embedder = members(data, encoder=dict, token_embedder=dict)
        names = [each.lower() for block in (encoder, embedder) for each in members(block, name=str)]
        if names != ["elmo", "cnn"]:
            raise ValueError(
                f"only an encoder 'elmo' with a token_embedder 'cnn' can be converted, as in all "
                f"published models; found {data}"
            )
        return BiLMConfig(
            token_encoder="char_word_cnn",
            n_characters=n_characters,
            n_words=n_words,
            vector_dim=embedder["word_dim"],
            cell_clip=encoder["cell_clip"] or None,
            proj_clip=encoder["proj_clip"] or None,
            **{name: encoder[name] for name in ("projection_dim", "dim", "n_layers")},
            **{name: embedder[name] for name in CHAR_CNN},
        )


def read_tensors(file: Path) -> dict[str, torch.Tensor]:
    """Read a pickled state dict, without running code in it."""
    with naming_errors("the weights", file):
        tensors = torch.load(file, map_location="cpu", weights_only=True)
        members(tensors)
        for key, tensor in tensors.items():
            # A small file may claim a huge tensor, or one without values.
            is_tensor = isinstance(tensor, torch.Tensor) and not tensor.is_meta
            if not is_tensor or tensor.untyped_storage().nbytes() < tensor.nbytes:
                raise ValueError(f"'{key}' is no tensor of numbers that the file contains")
        return {str(key): tensor.detach() for key, tensor in tensors.items()}


def read_entries(file: Path) -> list[str]:
    """Read the entries of a dictionary, in the order of their ids.

    Raises:
        ValueError: the file is damaged, or its ids are not 0, 1, 2, …
    """
    entries: dict[str, int] = {}
    with naming_errors("the dictionary", file):
        # As the original implementation reads it: `strip` removes other scripts' spaces, too.
        for line in filter(str.strip, file.read_text("utf-8").split("\n")):
            *entry, number = line.strip().split("\t")
            entries[entry[0] if entry else SPACE] = int(number)
        if sorted(entries.values()) != list(range(len(entries))):
            raise ValueError(f"its {len(entries):,} entries must have ids from 0 on, each once")
    return sorted(entries, key=entries.__getitem__)


def to_parameters(
    config: BiLMConfig, embedder: dict[str, torch.Tensor], encoder: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The tensors of a state dict by their names in a `BiLM`; `build` refuses unknown ones.

    Args:
        config: the config of the biLM.
        embedder, encoder: the two state dicts.
    """
    parameters = {}
    for name, tensor in embedder.items():
        layer, _, kind = name.rpartition(".")
        if layer.startswith("highways._layers."):
            highway = f"char_cnn.highways.{layer.rpartition('.')[2]}"
            transform, carry = tensor.chunk(2)
            parameters[f"{highway}.transform.{kind}"] = transform
            parameters[f"{highway}.carry.{kind}"] = -carry  # its gate is for what passes unchanged
        else:
            parameters[f"char_cnn.{EMBEDDINGS.get(layer, layer)}.{kind}"] = tensor
    for k in range(config.n_layers):
        for ours, theirs in LSTM.items():
            names = [f"{direction}_layer_{k}.{theirs}" for direction in ("forward", "backward")]
            if encoder.keys() >= set(names):
                parameters[f"lstm.{k}.{ours}"] = torch.stack([encoder.pop(name) for name in names])
                if ours == "bias":
                    parameters[f"lstm.{k}.bias"][:, config.dim : 2 * config.dim] -= FORGET_BIAS
    return parameters | encoder
