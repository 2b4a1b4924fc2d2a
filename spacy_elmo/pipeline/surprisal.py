"""The pipeline component ``elmo_surprisal``: how unexpected each token is in its sentence."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import srsly
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Token
from spacy.util import minibatch
from thinc.api import get_torch_default_device

from ..text.segments import sentence_bounds
from ..util.files import members, naming_errors
from .warn import warn_of_weights

if TYPE_CHECKING:
    import torch

    from ..lm.language_model import LanguageModel

if not Token.has_extension("surprisal"):
    Token.set_extension("surprisal", default=None)


@Language.factory(
    "elmo_surprisal",
    assigns=["token._.surprisal"],
    default_config={"weights": "en_sm", "direction": "forward"},
)
def make_surprisal(
    nlp: Language, name: str, weights: str, direction: Literal["forward", "backward"]
) -> "ElmoSurprisal":
    """Construct an elmo_surprisal component; no file is opened."""
    return ElmoSurprisal(name, weights, direction)


class ElmoSurprisal(Pipe):
    """Writes ``token._.surprisal``, in bits, from a biLM's language model.

    Surprisal is ``-log2 p(token | the words before it in the sentence)``; the backward direction
    takes the words after it. Whitespace and out-of-vocabulary words have None. Sentences are the
    Doc's sentences if it has any, else the text between sentence-final punctuation marks. A
    component that is constructed after `spacy.require_gpu` computes on the GPU. A saved pipeline
    contains the language model.

    Args:
        name: the component's name.
        weights: a name, or a directory of our format, with a language-model head. The first Doc
            loads them.
        direction: ``"forward"`` or ``"backward"``. A second component would overwrite the values of
            the first; use `spacy_elmo.LanguageModel` for both directions.
    """

    def __init__(self, name: str, weights: str, direction: str):
        self.name = name
        self.weights = weights
        self.direction = direction
        # Now, because the thread that sends the first Doc may have another default.
        self._device = get_torch_default_device()

    @cached_property
    def language_model(self) -> "LanguageModel":
        """The language model; the first use loads it.

        Raises:
            ValueError: the weights are missing or damaged, or have no head.
        """
        return _load(self.weights, self._device)

    def __call__(self, doc: Doc) -> Doc:
        """Annotate a Doc."""
        self.annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, in batches."""
        handle = self.get_error_handler()
        for docs in minibatch(stream, batch_size):
            try:
                self.annotate(docs)
                yield from docs
            except Exception as error:
                handle(self.name, self, docs, error)

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Write the surprisals of a batch of Docs.

        Raises:
            ValueError: see `language_model`.
        """
        sentences = [(doc, tokens) for doc in docs for tokens in sentence_bounds(doc).tokens]
        if not sentences:  # this needs no weights
            return
        if "language_model" not in vars(self):
            warn_of_weights(self.language_model.card, self.weights, sentences[0][0].vocab.lang)
        words = [[doc[i].text for i in tokens] for doc, tokens in sentences]
        surprisals = self.language_model.surprisals(words)
        for (doc, tokens), surprisal in zip(sentences, surprisals, strict=True):
            bits = getattr(surprisal, self.direction).tolist()
            for i, value, known in zip(tokens, bits, surprisal.known, strict=True):
                doc[i]._.surprisal = value if known else None

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the language model as a directory of our format, unless ``"model"`` is excluded."""
        if "model" not in exclude:
            self.language_model.save(path)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ElmoSurprisal":
        """Load the language model that `to_disk` saved, unless ``"model"`` is excluded.

        Raises:
            ValueError: a file is missing or damaged.
        """
        if "model" not in exclude:
            with naming_errors(f"the component '{self.name}' from", str(path)):
                self.language_model = _load(Path(path), self._device)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the files that `to_disk` writes."""
        with TemporaryDirectory() as directory:
            self.to_disk(Path(directory, "model"), exclude=exclude)
            files = Path(directory).glob("*/*")
            return srsly.msgpack_dumps({file.name: file.read_bytes() for file in files})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoSurprisal":
        """Load the language model that `to_bytes` serialized, unless ``"model"`` is excluded.

        Raises:
            ValueError: the bytes are damaged.
        """
        what = f"the component '{self.name}' from"
        with naming_errors(what, "bytes"), TemporaryDirectory() as directory:
            files = srsly.msgpack_loads(data)
            if not isinstance(files, dict) or {*map(type, files)} - {str}:
                raise ValueError("expected files by name")
            members(files, **dict.fromkeys(files, bytes))
            for name, content in files.items():
                Path(directory, Path(name).name).write_bytes(content)
            if "model" not in exclude:
                self.language_model = _load(Path(directory), self._device)
        return self


def _load(weights: str | Path, device: "torch.device") -> "LanguageModel":
    # Every `spacy.blank` imports this module: what is heavy waits until it is needed.
    from ..lm.language_model import LanguageModel

    lm = LanguageModel.load(weights)
    return LanguageModel(lm.model.to(device), lm.head.to(device), lm.vocab, lm.card)
