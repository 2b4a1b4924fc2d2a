"""Our format for a biLM: a directory with ``config.json`` and ``weights.safetensors``.

Optional files are ``vocab.txt`` and ``head.safetensors`` (the head), ``statistics.safetensors``
(for similarity), and the card: ``meta.json``, ``README.md`` and ``LICENSE``. No file is unpickled.
"""

from __future__ import annotations

from pathlib import Path

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import naming_errors, read_json, write_json
from .layout import CONFIG, FILES, HEAD, VOCAB, WEIGHTS, Card, read_words
from .statistics import Statistics
from .tensors import Tensors, build, check_tensors, empty_head, open_tensors, stored, write_tensors


class Weights:
    """The weights in a directory. Only `load`, `head` and `statistics` read tensors.

    Args:
        path: the directory.

    Attributes:
        where: the directory, for messages.
    """

    def __init__(self, path: Path):
        self.path, self.where = path, str(path)

    def config(self) -> BiLMConfig:
        """Read the config of the biLM.

        Raises:
            ValueError: the config is missing or wrong.
        """
        data = read_json(self.path / CONFIG)
        with naming_errors("the config", self.path / CONFIG):
            return BiLMConfig.from_dict(data)

    def load(self) -> BiLM:
        """Load the biLM in float32, in evaluation mode, on the CPU.

        Raises:
            ValueError: a file is missing or damaged, or does not fit the config.
        """
        file = self.path / WEIGHTS
        return build(self.config(), str(file), *open_tensors(file))

    def has_head(self) -> bool:
        """Tell if there are a head and its vocabulary."""
        return (self.path / HEAD).is_file() and (self.path / VOCAB).is_file()

    def words(self) -> list[str]:
        """Read the V words of the head.

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
        """Read the V words of the head and its tensors, ``weight`` ``(V, P)`` and ``bias`` ``(V,)``
        in float32.

        Raises:
            ValueError: there is no head, it is damaged, or it does not fit the biLM or the words.
        """
        words = self.words()
        source = f"The head of {self.where} ({len(words):,} words in '{self.path / VOCAB}')"
        expected = empty_head(len(words), self.config())
        return words, check_tensors(expected, source, *open_tensors(self.path / HEAD))

    def statistics(self) -> Statistics | None:
        """Read the statistics, None if there are none.

        Raises:
            ValueError: the statistics are damaged, or belong to another biLM.
        """
        return Statistics.read(self.path, self.config())

    def card(self) -> Card:
        """Read the card, which is empty if there is none.

        Raises:
            ValueError: the card is damaged.
        """
        return Card.read(self.path)

    def files(self) -> list[Path]:
        """The files of the weights, with head and card."""
        return [file for file in (self.path / name for name in FILES) if file.is_file()]


def save_bilm(model: BiLM, path: Path, card: Card | None = None, half: bool = False) -> None:
    """Write a biLM's config, weights and card into a directory that exists.

    Args:
        model: the biLM, with its warm state if it has one.
        path: the directory. With `atomic_directory` it appears whole or not at all.
        card: the card to write beside the weights.
        half: round the weights to half precision.
    """
    write_json(path / CONFIG, model.config.to_dict())
    write_tensors(stored(model, half), path / WEIGHTS)
    if card is not None:
        card.save(path)
