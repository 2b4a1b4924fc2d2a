"""What the components share: their default models, and the labels that two of them have."""

from collections.abc import Callable, Iterable
from typing import Any, Dict, List, Optional, Tuple, TypeVar

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.training import Example
from thinc.api import Model

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP035, UP045

F = TypeVar("F", bound=Callable[..., Any])


def default_model(architecture: str) -> Dict[str, Any]:
    """An architecture's own defaults, on token vectors of spaCy's size."""
    tok2vec = {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "pretrained_vectors": None,
        "width": 96,
        "depth": 4,
        "embed_size": 2000,
        "window_size": 1,
        "maxout_pieces": 3,
        "subword_features": True,
    }
    return {"@architectures": architecture, "tok2vec": tok2vec}


def factory(name: str, **settings: Any) -> Callable[[F], F]:
    """`Language.factory`, unless there is one of this name: each packaged pipeline has a copy of
    this code, and several may be loaded."""
    return (lambda make: make) if Language.has_factory(name) else Language.factory(name, **settings)


def at_least_one(**settings: int) -> None:
    """Refuse settings below 1.

    Raises:
        ValueError: one is.
    """
    for name, value in settings.items():
        if value < 1:
            raise ValueError(f"{name} is {value}: set it to 1 or more.")


class LabelledPipe(TrainablePipe):
    """A component with labels, which it finds out from the training data.

    Attributes:
        no_labels: the error if there are none.
    """

    model: Model
    no_labels: str

    @property
    def labels(self) -> Tuple[str, ...]:
        return tuple(self.cfg.get("labels", ()))

    @property
    def n_outputs(self) -> int:
        """The number of outputs of the model."""
        return len(self.labels)

    def labels_of(self, example: Example) -> Iterable[str]:
        raise NotImplementedError

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[List[str]] = None,
    ) -> None:
        """Find out the labels, and the shapes of the model.

        Raises:
            ValueError: there is no label in the data.
        """
        examples = list(get_examples())
        if labels is None:
            labels = sorted({label for example in examples for label in self.labels_of(example)})
        if not labels:
            raise ValueError(self.no_labels)
        self.cfg["labels"] = list(labels)
        self.model.get_ref("output_layer").set_dim("nO", self.n_outputs, force=True)
        self.model.initialize(X=[eg.predicted for eg in examples if len(eg.predicted)][:10])
