"""The layout of ELMoForManyLangs (Che et al. 2018), read to be converted.

A directory has ``config.json``, which names another file with the network's sizes, the dictionaries
``char.dic`` and ``word.dic``, and two pickled state dicts, ``token_embedder.pkl`` and
``encoder.pkl``. PyTorch reads these with ``weights_only``, which runs no code of theirs.

Its network is ELMo's but for the token encoder (see `CharWordCNN`) and the forget gate, to which
nothing is added. Its own implementation carries the LSTM state from batch to batch; ours starts
each sentence from zero, as its first batch does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..bilm.char_word_cnn import CharWordCNN
from ..bilm.config import BiLMConfig
from ..bilm.lstm_layer import FORGET_BIAS
from ..bilm.model import BiLM
from ..util.files import read_json, reading
from .layout import CONFIG, Weights
from .native import check_output, check_tensors

ENCODER, EMBEDDER = "encoder.pkl", "token_embedder.pkl"
CHARACTERS, WORDS = "char.dic", "word.dic"
SPACE = "\u3000"  # the token of a line that has only an id: it was stripped
# The sizes of all published models; their config.json may name a file that comes with the package.
SIZES = {
    "encoder": {
        "name": "elmo", "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn", "activation": "relu", "n_highway": 2, "word_dim": 100, "char_dim": 50,
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "max_characters_per_token": 50,
    },
}  # fmt: skip


def is_many_langs(path: Path) -> bool:
    """Tell whether a directory has the files of this layout."""
    return (path / ENCODER).is_file() and (path / EMBEDDER).is_file()


class ManyLangsWeights(Weights):
    """A directory of ELMoForManyLangs.

    Args:
        path: the directory.
    """

    layout = "many-langs"

    def __init__(self, path: Path):
        self.path = self.folder = path
        self.where, self.vocab = str(path), None

    def config(self) -> BiLMConfig:
        name = read_json(self.path / CONFIG).get("config_path")
        # Often a path of the machine that trained it: only a file in this directory is read.
        file = self.path / Path(str(name)).name
        data = read_json(file) if name and file.is_file() and file.name != CONFIG else SIZES
        with reading("the sizes of the network", file):
            return _config(data, len(self._entries(CHARACTERS)), len(self._entries(WORDS)))

    def load(self) -> BiLM:
        config = self.config()
        model, tensors = BiLM(config), {}
        for name in (EMBEDDER, ENCODER):
            with reading("the weights", self.path / name):
                found = torch.load(self.path / name, map_location="cpu", weights_only=True)
            tensors[name] = {key: x.detach() for key, x in _state_dict(found, self.path / name)}
            shapes = _embedder_shapes(config) if name == EMBEDDER else _encoder_shapes(config)
            empty = {key: torch.empty(shape, device="meta") for key, shape in shapes.items()}
            check_tensors(empty, tensors[name], str(self.path / name))
        encoder = model.token_encoder
        assert isinstance(encoder, CharWordCNN)
        with reading("the dictionaries of", self.where), torch.no_grad():
            encoder.set_dictionaries(self._entries(CHARACTERS), self._entries(WORDS))
            _fill_embedder(encoder, tensors[EMBEDDER])
            _fill_lstm(model, tensors[ENCODER])
        model.eval()
        check_output(model, self.where)
        return model

    def check(self) -> None:
        self.load()

    def files(self) -> list[Path]:
        return [self.path / name for name in (CONFIG, CHARACTERS, WORDS, EMBEDDER, ENCODER)]

    def is_ours(self) -> bool:
        return False

    def has_head(self) -> bool:
        return False  # a sampled softmax, which is not published

    def head(self) -> tuple[list[str], dict[str, torch.Tensor]]:
        raise self.no_head(["head in this layout"])

    def _entries(self, name: str) -> list[str]:
        """A dictionary's entries, in the order of their ids.

        Raises:
            ValueError: the file is damaged, or its ids are not 0, 1, 2, …
        """
        entries: dict[str, int] = {}
        with reading("the dictionary", self.path / name):
            # As its own implementation reads it: str.strip also takes characters of other scripts.
            for line in (self.path / name).read_text("utf-8").split("\n"):
                if fields := line.strip().split("\t"):
                    if fields == [""]:
                        continue
                    entry, number = fields if len(fields) > 1 else (SPACE, *fields)
                    entries[entry] = int(number)
            if sorted(entries.values()) != list(range(len(entries))):
                raise ValueError(
                    f"its {len(entries):,} entries must have the ids 0 to {len(entries) - 1:,}"
                )
        return sorted(entries, key=entries.__getitem__)


def _config(data: Mapping[str, Any], n_characters: int, n_words: int) -> BiLMConfig:
    encoder, embedder = data["encoder"], data["token_embedder"]
    kinds = encoder["name"].lower(), embedder["name"].lower()
    is_known = kinds == ("elmo", "cnn") and encoder["projection_dim"] < encoder["dim"]
    if not is_known or not (embedder["word_dim"] and embedder["char_dim"]):
        raise ValueError(
            f"only an encoder 'elmo' that projects its cells, with a token_embedder 'cnn' of words "
            f"and characters, can be converted, as in all published models; found {data}"
        )
    return BiLMConfig(
        filters=embedder["filters"],
        token_encoder="char_word_cnn",
        n_characters=n_characters,
        n_words=n_words,
        vector_dim=embedder["word_dim"],
        **{name: encoder[name] for name in ("projection_dim", "dim", "n_layers")},
        cell_clip=encoder["cell_clip"] or None,
        proj_clip=encoder["proj_clip"] or None,
        **{name: embedder[name] for name in ("char_dim", "activation", "n_highway")},
        max_characters_per_token=embedder["max_characters_per_token"],
    )


def _state_dict(found: object, path: Path) -> Iterator[tuple[str, torch.Tensor]]:
    is_one = isinstance(found, Mapping) and all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) for name, tensor in found.items()
    )
    if not is_one:
        raise ValueError(f"'{path}' is not a state dict of tensors.")
    assert isinstance(found, Mapping)
    yield from found.items()


def _embedder_shapes(config: BiLMConfig) -> dict[str, tuple[int, ...]]:
    C, F, E, P = config.char_dim, config.n_filters, config.vector_dim, config.projection_dim
    assert E and config.n_characters and config.n_words
    shapes: dict[str, tuple[int, ...]] = {
        "char_emb_layer.embedding.weight": (config.n_characters, C),
        "word_emb_layer.embedding.weight": (config.n_words, E),
        "projection.weight": (P, E + F),
        "projection.bias": (P,),
    }
    for i, (width, number) in enumerate(config.filters):
        shapes |= {
            f"convolutions.{i}.weight": (number, C, width),
            f"convolutions.{i}.bias": (number,),
        }
    for i in range(config.n_highway):
        name = f"highways._layers.{i}"
        shapes |= {f"{name}.weight": (2 * F, F), f"{name}.bias": (2 * F,)}
    return shapes


def _encoder_shapes(config: BiLMConfig) -> dict[str, tuple[int, ...]]:
    P, D = config.projection_dim, config.dim
    return {
        f"{direction}_layer_{k}.{name}": shape
        for direction in ("forward", "backward")
        for k in range(config.n_layers)
        for name, shape in {
            "input_linearity.weight": (4 * D, P),
            "state_linearity.weight": (4 * D, P),
            "state_linearity.bias": (4 * D,),
            "state_projection.weight": (P, D),
        }.items()
    }


def _fill_embedder(encoder: CharWordCNN, tensors: Mapping[str, torch.Tensor]) -> None:
    encoder.embedding.weight.copy_(tensors["char_emb_layer.embedding.weight"])
    encoder.word_embedding.weight.copy_(tensors["word_emb_layer.embedding.weight"])
    _fill_linear(encoder.projection, tensors, "projection")
    for i, convolution in enumerate(encoder.convolutions):
        _fill_linear(convolution, tensors, f"convolutions.{i}")
    for i, highway in enumerate(encoder.highways):
        for kind in ("weight", "bias"):
            transform, carry = tensors[f"highways._layers.{i}.{kind}"].chunk(2)
            getattr(highway.transform, kind).copy_(transform)
            getattr(highway.carry, kind).copy_(-carry)  # its gate is of what passes unchanged


def _fill_linear(layer: Any, tensors: Mapping[str, torch.Tensor], name: str) -> None:
    layer.weight.copy_(tensors[f"{name}.weight"])
    layer.bias.copy_(tensors[f"{name}.bias"])


def _fill_lstm(model: BiLM, tensors: Mapping[str, torch.Tensor]) -> None:
    D = model.config.dim
    layers: Sequence[Any] = list(model.lstm)
    for k, layer in enumerate(layers):
        for d, direction in enumerate(("forward", "backward")):
            name = f"{direction}_layer_{k}"
            layer.weight_ih[d] = tensors[f"{name}.input_linearity.weight"]
            layer.weight_hh[d] = tensors[f"{name}.state_linearity.weight"]
            layer.bias[d] = tensors[f"{name}.state_linearity.bias"]
            layer.bias[d, D : 2 * D] -= FORGET_BIAS
            layer.weight_hr[d] = tensors[f"{name}.state_projection.weight"]
