"""How well does the biLM predict text of each register, compared with counted words?

The held-out perplexity of a unigram model and of the biLM, in both directions and as their mean.
All of them predict the same words and the ends of the same sentences, over the same vocabulary:
the words of DATA/eval_vocab.txt that the head has, too; all others are <UNK>. The counted words are
the first of each training text in DATA/lm but MASC's, which no shipped biLM has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.cli.perplexity import read_text
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import SPECIALS, UNKNOWN, Vocabulary
from spacy_elmo.weights.find import WeightsLike, find_weights
from spacy_elmo.weights.layout import read_words
from spacy_elmo.weights.native import Weights

END = 1  # </S> in a vocabulary of the package
KOREAN = ("kowiki", "nsmc-reviews")
TOKENIZED = ("wikitext-2",)  # in another way, with <unk> in it
NEVER_TRAINED_ON = ("masc",)


def texts(data: Path, split: str, lang: str = "en") -> dict[str, Path]:
    """The texts of a split and a language, by their names."""
    if lang not in ("en", "ko"):
        file = data / "languages" / lang / f"novels.{split}.txt.xz"
        return {"novels": file} if file.exists() else {}
    files = sorted(
        [*data.glob(f"lm/*/{split}.txt.xz"), *data.glob(f"lm/registers/*/{split}.txt.xz")]
    )
    found = {file.parent.name: file for file in files if file.parent.name not in TOKENIZED}
    return {name: file for name, file in found.items() if (name in KOREAN) == (lang == "ko")}


def first_words(sentences: Iterable[list[str]], n_words: int) -> Iterator[list[str]]:
    """The sentences up to the one with the nth word; all of them if n is 0."""
    n_read = 0
    for sentence in sentences:
        yield sentence
        n_read += len(sentence)
        if n_words and n_read >= n_words:
            return


def read(weights: Weights, text: Path, n_words: int) -> Iterator[list[str]]:
    return first_words(read_text(weights, text, False, None, None), n_words)


class RestrictedHead(SoftmaxHead):
    """A head restricted to some of its words, to compare heads of several vocabularies.

    Words that are left out become ``<UNK>``, whose probability is then the sum of theirs.

    Attributes:
        vocab: the words that remain, in the order that they had.
    """

    def __init__(self, head: SoftmaxHead, vocab: Vocabulary, words: Iterable[str]):
        super().__init__(*head.weight.shape)
        chosen = {*SPECIALS, *words}
        order = sorted(range(len(vocab)), key=lambda i: vocab.words[i] not in chosen)
        self.load_state_dict({name: each[order] for name, each in head.state_dict().items()})
        known = [word for word in vocab.words if word in chosen]
        self.vocab = Vocabulary(known)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        logits, n_known = super().forward(hidden), len(self.vocab)
        unknown = torch.cat([logits[:, UNKNOWN, None], logits[:, n_known:]], dim=1)
        logits[:, UNKNOWN] = unknown.logsumexp(dim=1)
        return logits[:, :n_known]


class LM(NamedTuple):
    """A biLM with a head and its words, and the weights for their language."""

    weights: Weights
    bilm: BiLM
    head: SoftmaxHead
    words: Vocabulary

    @classmethod
    def load(
        cls, weights: WeightsLike, head: WeightsLike | None = None, vocab: Path | None = None
    ) -> LM:
        """A biLM whose head is its own or that of other weights of it, restricted to the words of
        a file that it has."""
        found = find_weights(weights)
        softmax, words = load_head(found if head is None else head)
        if vocab is not None:
            softmax = RestrictedHead(softmax, words, read_words(vocab)).eval()
            words = softmax.vocab
        return cls(found, found.load(), softmax, words)

    def ids(self, sentences: Iterable[list[str]]) -> np.ndarray:
        """Of all words and the end of each sentence."""
        return np.array([id for s in sentences for id in (*(self.words[w] for w in s), END)])

    def count(self, texts: Iterable[Path], n_words: int) -> np.ndarray:
        """Logarithms of the probabilities of words ``(V,)``, by their counts plus one in the first
        words of each text."""
        tokens = np.concatenate([self.ids(read(self.weights, text, n_words)) for text in texts])
        counts = np.bincount(tokens, minlength=len(self.words)) + 1.0
        return np.log(counts / counts[1:].sum())  # <S> is never predicted

    def measure(
        self, text: Path, n_words: int = 0, counted: np.ndarray | None = None
    ) -> dict[str, float]:
        """Perplexities of the first words of a text, 0 for all: "forward", "backward", "mean", and
        of the counted words, as "Unigrams"; "words", their share of "<UNK>", "vocabulary"."""
        sentences = [s for s in read(self.weights, text, n_words) if s]
        block = EncodedSentences(sentences, self.words, None, self.bilm.char_cnn.to_ids)
        found = evaluate(self.bilm, self.head, block)
        unigrams = {}
        if counted is not None:
            unigrams["Unigrams"] = float(np.exp(-counted[self.ids(sentences)].mean()))
        return {
            "words": found.n_words,
            "<UNK>": found.unknown_rate,
            **unigrams,
            "forward": found.forward,
            "backward": found.backward,
            "mean": found.mean,
            "vocabulary": len(self.words),
        }
