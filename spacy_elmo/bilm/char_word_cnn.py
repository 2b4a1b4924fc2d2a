"""The token encoder of ELMoForManyLangs (Che et al. 2018): dictionaries of characters and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ..util.files import naming_errors
from .char_cnn import CharCNN
from .characters import BOS, EOS, CharacterIds
from .config import BiLMConfig

# Entries of both dictionaries, and of the one of characters alone.
UNKNOWN, PADDING = "<oov>", "<pad>"
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END = "<bos>", "<eos>", "<bow>", "<eow>"
SPECIAL_WORDS = (UNKNOWN, PADDING)
END_OF_ENTRY = b"\xff"  # UTF-8 never has this byte, so an entry may have any character
SPECIAL_CHARACTERS = (*SPECIAL_WORDS, SENTENCE_START, SENTENCE_END, WORD_START, WORD_END)


class DictionaryIds(CharacterIds):
    """The ids of words, as `CharWordCNN` takes them.

    Args:
        plain: the ids of a char-CNN of the same shape, whose characters are bytes.
        characters, words: the dictionaries, in the order of their ids.

    Raises:
        ValueError: a special entry is missing.
    """

    def __init__(self, plain: CharacterIds, characters: list[str], words: list[str]):
        super().__init__(plain.max_width, plain.max_characters, plain.form, plain.lower_capitals)
        self.characters = {character: i + 1 for i, character in enumerate(characters)}
        self.words = {word: i for i, word in enumerate(words)}
        for special, found in ((SPECIAL_CHARACTERS, self.characters), (SPECIAL_WORDS, self.words)):
            if missing := [entry for entry in special if entry not in found]:
                raise ValueError(f"The dictionary lacks the entries {missing}.")
        self.padding = self.characters[PADDING]

    def __call__(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids ``(n_words, n_positions, 2)``, of characters (+ 1) and, at each position, of the
        word; and how many positions each word needs ``(n_words,)``."""
        named = ({BOS: SENTENCE_START, EOS: SENTENCE_END}.get(word, word) for word in words)
        # The word vector is that of the truncated word, too.
        read = [word[: self.max_characters - 2] for word in named]
        encoded = [self._encode(word) for word in read]
        lengths = np.array([len(each) for each in encoded], dtype=np.int64)
        sizes = self.sizes(lengths)
        ids = np.full((len(words), sizes.max(initial=0), 2), self.padding, dtype=np.int32)
        for row, word, characters in zip(ids, read, encoded, strict=True):
            row[: len(characters), 0] = characters
            row[:, 1] = self.words.get(word, self.words[UNKNOWN])
        return ids, sizes

    def _encode(self, word: str) -> list[int]:
        ids, unknown = self.characters, self.characters[UNKNOWN]
        if word in (SENTENCE_START, SENTENCE_END):
            inner = [ids[word]]
        else:
            inner = [ids.get(character, unknown) for character in word]
        # The published models were trained with the two markers exchanged.
        return [ids[WORD_END], *inner, ids[WORD_START]]


class CharWordCNN(CharCNN):
    """A char-CNN over the characters of a dictionary, joined by a vector for each known word.

    The dictionaries are tensors beside the weights, so that they are saved with them.

    Args:
        config: the sizes; the dictionaries are empty until `load_state_dict`.
    """

    characters: torch.Tensor
    words: torch.Tensor

    def __init__(self, config: BiLMConfig):
        super().__init__(config)
        assert config.n_words and config.vector_dim
        self.register_buffer("characters", torch.zeros(0, dtype=torch.uint8))
        self.register_buffer("words", torch.zeros(0, dtype=torch.uint8))
        self.word_embedding = nn.Embedding(config.n_words, config.vector_dim)
        self.register_load_state_dict_pre_hook(_make_room)
        self.register_load_state_dict_post_hook(_read_dictionaries)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """``(n_words, n_positions, 2)`` ids to ``(n_words, projection_dim)`` vectors."""
        word_ids = ids[:, 0, 1]  # before it is trimmed: each word has a position at least
        features = self.read_characters(ids[..., 0])
        joined = torch.cat([self.word_embedding(word_ids).to(features.dtype), features], dim=1)
        return self.project(joined)


def _make_room(module: CharWordCNN, state: dict[str, torch.Tensor], prefix: str, *_: Any) -> None:
    for name in ("characters", "words"):
        own, given = getattr(module, name), state.get(f"{prefix}{name}", torch.empty(0))
        if own.shape != given.shape:  # other words have other lengths
            setattr(module, name, own.new_zeros(given.shape))


def _read_dictionaries(module: CharWordCNN, _: Any) -> None:
    characters, words = unpack_words(module.characters), unpack_words(module.words)
    sizes = module.embedding.num_embeddings, module.word_embedding.num_embeddings
    for name, entries, n in zip(("characters", "words"), (characters, words), sizes, strict=True):
        if len(set(entries)) != n or len(entries) != n:
            raise ValueError(
                f"The dictionary of {name} has {len(set(entries)):,} distinct entries for {n:,} "
                f"vectors."
            )
    module.to_ids = DictionaryIds(module.to_ids, characters, words)


def pack_words(words: Iterable[str]) -> torch.Tensor:
    """Words of any characters as one tensor of bytes."""
    data = b"".join(word.encode("utf-8", "surrogatepass") + END_OF_ENTRY for word in words)
    return torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy())


def unpack_words(packed: torch.Tensor) -> list[str]:
    """The words that `pack_words` has packed.

    Raises:
        ValueError: they are damaged.
    """
    parts = packed.cpu().numpy().tobytes().split(END_OF_ENTRY)[:-1]
    with naming_errors("the words of", "the dictionaries"):
        return [part.decode("utf-8", "surrogatepass") for part in parts]
