"""A biLM with all that belongs to it, as `convert` and `package` read, complete and write it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spacy.language import Language
from spacy.util import get_lang_class
from wasabi import msg

from ..bilm.model import BiLM
from ..bilm.sentence_batches import IndexedSentences
from ..bilm.warm_state import N_STREAMS, compute_warm_state
from ..lm.head import load_head, save_head
from ..lm.softmax import SoftmaxHead
from ..lm.vocabulary import Vocabulary
from ..text.readers import blank, read_paragraphs
from ..text.split_text import split_text
from ..util.files import read_whole, reading, write_bytes
from ..weights.layout import STATISTICS, Card, Weights
from ..weights.native import save_bilm
from ..weights.published.weights import PublishedWeights, write_published
from ..weights.statistics import Statistics, compute_statistics

MAX_EXTRA = 2**28  # bytes of a file that is copied
FEW_WORDS = 2000  # for statistics


@dataclass
class Bundle:
    """A biLM with all that belongs to it.

    Attributes:
        weights: where it comes from.
        model: the biLM.
        card: its card.
        head: the head and its vocabulary, None to leave them out.
        statistics: of its layers and words, None if there are none.
    """

    weights: Weights
    model: BiLM
    card: Card
    head: tuple[SoftmaxHead, Vocabulary] | None
    statistics: Statistics | None

    @classmethod
    def read(
        cls,
        weights: Weights,
        lang: str | None = None,
        vocab: Path | None = None,
        no_head: bool = False,
    ) -> Bundle:
        """Read everything to write.

        Args:
            weights: where to read from.
            lang: language of the biLM, for the card.
            vocab: vocabulary of a published head.
            no_head: leave the head out.

        Raises:
            ValueError: a file is damaged, or the settings do not fit the weights.
        """
        published = isinstance(weights, PublishedWeights) and weights.has_softmax() and not no_head
        if vocab is not None:
            if not published:
                raise ValueError(
                    f"--vocab is for a published head (softmax/W and softmax/b), but there is none "
                    f"in '{weights.where}', or --no-head leaves it out. Drop --vocab."
                )
            weights.vocab = vocab
        elif published and weights.vocab is None:
            msg.warn(
                "The head (the softmax layer that predicts words) is left out, because its "
                "vocabulary is unknown. Give it with --vocab."
            )
        card = weights.card()
        if lang:
            card.meta["lang"] = lang
        head = None if no_head or not weights.has_head() else load_head(weights)
        return cls(weights, weights.load(), card, head, weights.statistics())

    def add_statistics(self, text: Path | None) -> None:
        """Compute the statistics of the biLM, whose warm state must be set.

        Args:
            text: to compute them from, in the language of the card; None to leave those that are
                there, if any, and if they are of this warm state.

        Raises:
            ValueError: the text has no two distinct words.
        """
        if text is not None:
            sentences = IndexedSentences(self._read_text(text), max_words=100)
            self.statistics = compute_statistics(self.model, sentences)
            n_words = len(sentences.tokens) - 2 * len(sentences.lengths)
            if n_words < FEW_WORDS:
                msg.warn(
                    f"The statistics are of {n_words:,} words, those of '{text}', and similarities "
                    f"will be rough. Give some ten thousand."
                )
        elif self.statistics is None and self.weights.beside(STATISTICS) is not None:
            msg.warn(
                "The statistics for similarity are left out, because they are those of another "
                "warm state. Give --statistics with a text to compute them again."
            )

    def add_warm_state(self, text: Path | None) -> None:
        """Compute the warm state of the biLM, if it needs one; statistics of another are dropped.

        Args:
            text: to compute it from, in the language of the card; None for the package's English
                passage.

        Raises:
            ValueError: the text is too short, or the biLM starts from a zero state.
        """
        needs_one = self.model.config.initial_state == "warm"
        if text is not None:
            if not needs_one:
                raise ValueError(
                    "--warm-text is for biLMs whose state was carried from sentence to sentence. "
                    "This one was trained from a zero state (initial_state is 'zero'), and another "
                    "would make its vectors worse. Drop --warm-text."
                )
            sentences = self._read_text(text)
            if len(sentences) < N_STREAMS:
                raise ValueError(
                    f"'{text}' has {len(sentences)} sentences; a warm state needs at least "
                    f"{N_STREAMS}, better 30."
                )
            self.model.set_warm_state(compute_warm_state(self.model, sentences))
            self.statistics = None
        elif needs_one and not self.weights.has_warm_state():
            self.model.warm_state()
            lang = self.card.meta.get("lang") or ""
            if not lang.lower().startswith("en"):
                language = f"the language '{lang}'" if lang else "the biLM's language, and --lang"
                msg.warn(
                    f"The warm state was computed from English text. Give --warm-text with some 30 "
                    f"sentences in {language}."
                )

    def _read_text(self, text: Path) -> list[list[str]]:
        """The sentences of a text, tokenized by the tokenizer of the card, or of its language."""
        meta = self.card.meta
        nlp = _blank(str(meta.get("lang") or "xx"), meta.get("tokenizer"))
        return list(split_text(nlp, read_paragraphs(text)))

    def save(self, directory: Path, layout: str = "native", half: bool = False) -> None:
        """Write the biLM with its card, its head and the other files that belong to it.

        Args:
            directory: an existing one.
            layout: ``"native"`` or ``"published"``.
            half: store the weights in half precision (native layout only).
        """
        for file in self.weights.extra_files():  # such as lists of sources, for attribution
            with reading("the file", file), file.open("rb") as opened:
                data = read_whole(opened, MAX_EXTRA)
            (directory / file.name).write_bytes(data)
        self.card.save(directory)
        if self.statistics is not None:
            write_bytes(directory / STATISTICS, self.statistics.to_bytes())
        if layout == "native":
            save_bilm(self.model, directory, half=half)
            if self.head is not None:
                save_head(*self.head, directory, half=half)
        else:
            head, vocab = self.head or (None, None)
            write_published(self.model, directory, head, vocab.words if vocab else ())


def _blank(lang: str, tokenizer: str | None) -> Language:
    """A blank pipeline of a language, of the multi-language class if spaCy does not support it."""
    try:
        get_lang_class(lang)
    except ImportError:
        msg.warn(
            f"spaCy does not support the language '{lang}': the text is tokenized as "
            f"multi-language ('xx'). If spaCy uses another code for it (Norwegian is 'nb'), give "
            f"that with --lang."
        )
        lang = "xx"
    return blank(lang, tokenizer)
