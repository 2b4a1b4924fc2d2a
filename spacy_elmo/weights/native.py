"""The format of a biLM: a directory with ``config.json`` and ``weights.safetensors``.

Optional are ``vocab.txt`` and ``head.safetensors`` (the language model's softmax),
``statistics.safetensors`` (for similarity), ``meta.json`` (name, language, licence, sources) and
the card ``README.md`` with ``LICENSE``.
No file here is ever unpickled.
"""

from __future__ import annotations

from pathlib import Path

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import read_json, reading, write_json
from .layout import CONFIG, FILES, HEAD, VOCAB, WEIGHTS, Card, read_words
from .statistics import Statistics
from .tensors import Tensors, build, check_tensors, head_like, stored, stored_tensors, write_tensors


class Weights:
    """A directory in this format; no tensor is read before `load`, `head` or `statistics`.

    Args:
        path: the directory.

    Attributes:
        where: the same, for messages.
    """

    def __init__(self, path: Path):
        self.path, self.where = path, str(path)

    def config(self) -> BiLMConfig:
        """The shape of the biLM.

        Raises:
            ValueError: it is missing or wrong.
        """
        data = read_json(self.path / CONFIG)
        with reading("the config", self.path / CONFIG):
            return BiLMConfig.from_dict(data)

    def load(self) -> BiLM:
        """The biLM, in float32, in evaluation mode, on the CPU.

        Raises:
            ValueError: something is missing, damaged, or does not fit the config.
        """
        file = self.path / WEIGHTS
        return build(self.config(), str(file), *stored(file))

    def has_head(self) -> bool:
        """Tell whether there are a language model's head and its vocabulary."""
        return (self.path / HEAD).is_file() and (self.path / VOCAB).is_file()

    def words(self) -> list[str]:
        """The V words of the head.

        Raises:
            ValueError: there is no head, or its vocabulary is damaged.
        """
        if not self.has_head():
            raise ValueError(
                f"The biLM in '{self.where}' comes without a language model's head ({HEAD} and "
                f"{VOCAB}), so it cannot predict words. Models from `python -m spacy elmo "
                f"pretrain` have one."
            )
        return read_words(self.path / VOCAB)

    def head(self) -> tuple[list[str], Tensors]:
        """The V words of the head, and its tensors, ``weight`` ``(V, P)`` and ``bias`` ``(V,)``, in
        float32.

        Raises:
            ValueError: there is none, it is damaged, or it does not fit the biLM or the words.
        """
        words = self.words()
        source = f"The head of {self.where} ({len(words):,} words in '{self.path / VOCAB}')"
        expected = head_like(len(words), self.config())
        return words, check_tensors(expected, source, *stored(self.path / HEAD))

    def statistics(self) -> Statistics | None:
        """Statistics of the layers and words; None if there are none.

        Raises:
            ValueError: they are damaged, or belong to another biLM.
        """
        return Statistics.read(self.path, self.config())

    def card(self) -> Card:
        """Name, language, licence and so on; empty where there is no card.

        Raises:
            ValueError: it is damaged.
        """
        return Card.read(self.path)

    def files(self) -> list[Path]:
        """The files that they are read from, card and head among them."""
        return [file for file in (self.path / name for name in FILES) if file.is_file()]


def save_bilm(model: BiLM, path: Path, card: Card | None = None, half: bool = False) -> None:
    """Write a biLM's config, weights and card into a directory that exists.

    Args:
        model: the biLM, with its warm state if it has one.
        path: where to; use `atomic_directory` to have it appear whole or not at all.
        card: written beside the weights.
        half: round the weights to half precision first.
    """
    write_json(path / CONFIG, model.config.to_dict())
    write_tensors(stored_tensors(model, half), path / WEIGHTS)
    if card is not None:
        card.save(path)
