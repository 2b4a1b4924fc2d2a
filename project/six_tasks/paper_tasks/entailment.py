"""Textual entailment: whether a hypothesis follows from a premise, contradicts it, or neither."""

from collections.abc import Iterable, Sequence
from typing import Any, Dict, List, Optional

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry
from thinc.api import Model, Softmax_v2
from thinc.types import Floats2d
from torch import Tensor, nn

from .inputs import HYPOTHESIS, PREMISE, given_text
from .layers import Places, feed_forward, first_rows, indices, is_word, read_places, softmax_over
from .pipes import LabelledPipe, default_model, factory

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP035, UP045

ADVICE = "make_pair(nlp, premise, hypothesis)"

Doc.set_extension("entailment", default=None, force=True)


class DecomposableAttention(nn.Module):
    """Attend, compare, aggregate (Parikh et al. 2016), with the comparisons and the pooling of ESIM
    (Chen et al. 2017): ``[a; b; a - b; a · b]``, means and maxima.
    """

    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__()
        self.attend = feed_forward(width, hidden, dropout)
        self.compare = feed_forward(4 * width, hidden, dropout)
        self.aggregate = feed_forward(4 * hidden, hidden, dropout)

    def forward(self, rows: Tensor, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """``(n_rows, width)`` and two times ``(batch, n)`` to ``(batch, hidden)``."""
        a, b = rows[premise], rows[hypothesis]
        in_a, in_b = is_word(premise), is_word(hypothesis)
        scores = self.attend(a) @ self.attend(b).transpose(1, 2)
        b_for_a = softmax_over(scores, in_b[:, None]) @ b
        a_for_b = softmax_over(scores.transpose(1, 2), in_a[:, None]) @ a
        pooled = [*self.pool(a, b_for_a, in_a), *self.pool(b, a_for_b, in_b)]
        return self.aggregate(torch.cat(pooled, dim=-1))

    def pool(self, own: Tensor, other: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        v = self.compare(torch.cat([own, other, own - other, own * other], dim=-1))
        mask = mask[..., None]
        return (v * mask).sum(1) / mask.sum(1), v.masked_fill(~mask, -1e4).amax(1)


def find_pairs(docs: Sequence[Doc]) -> Places:
    found: Dict[str, Any] = {}
    for key in (PREMISE, HYPOTHESIS):
        bounds = [given_text(doc, key, ADVICE) for doc in docs]
        first = first_rows(docs)
        found[key] = indices([(i + a, i + b) for i, (a, b) in zip(first, bounds, strict=True)])
    return found


@registry.architectures("six_tasks.Entailment.v1")
def Entailment(
    tok2vec: Model[List[Doc], List[Floats2d]],
    width: int = 128,
    hidden_width: int = 128,
    dropout: float = 0.2,
    nO: Optional[int] = None,
) -> Model[List[Doc], Floats2d]:
    """``six_tasks.Entailment.v1``: decomposable attention.

    Args:
        tok2vec: any token vectors.
        width: to which they are reduced.
        hidden_width: of the layers that attend, compare and aggregate.
        dropout: in these.
        nO: number of classes; None: found out from the data.

    Returns:
        Docs to probabilities ``(n_docs, nO)``.
    """
    module = DecomposableAttention(width, hidden_width, dropout)
    return read_places(tok2vec, width, module, find_pairs, Softmax_v2(nO, hidden_width))


@factory(
    "entailment",
    assigns=["doc._.entailment"],
    default_config={"model": default_model("six_tasks.Entailment.v1")},
    default_score_weights={"entailment_acc": 1.0},
)
def make_entailment(nlp: Language, name: str, model: Model) -> "EntailmentClassifier":
    return EntailmentClassifier(nlp.vocab, model, name)


class EntailmentClassifier(LabelledPipe):
    """The component `entailment`: sets ``doc._.entailment``, the probability of each class.

    Reads ``doc.spans["premise"]`` and ``doc.spans["hypothesis"]``, see `inputs.make_pair`. It stays
    None of Docs without words.
    """

    no_labels = "No training Doc has classes: set doc._.entailment = {label: 1.0}."

    def labels_of(self, example: Example) -> Iterable[str]:
        return example.reference._.entailment or {}

    def predict(self, docs: Sequence[Doc]) -> Floats2d:
        if not any(len(doc) for doc in docs):
            return self.model.ops.alloc2f(len(docs), len(self.labels))
        return self.model.predict(docs)

    def set_annotations(self, docs: Sequence[Doc], scores: Floats2d) -> None:
        for doc, row in zip(docs, self.model.ops.to_numpy(scores), strict=True):
            if len(doc):
                doc._.entailment = dict(zip(self.labels, map(float, row), strict=True))

    def get_loss(self, examples: Sequence[Example], scores: Floats2d) -> tuple[float, Floats2d]:
        """Cross-entropy, and its gradient by the logits.

        Raises:
            ValueError: a Doc has a class that was not found at initialize.
        """
        truths = np.zeros(scores.shape, dtype="float32")
        known = np.zeros((len(examples), 1), dtype="float32")
        for i, example in enumerate(examples):
            for label, value in (example.reference._.entailment or {}).items():
                if label not in self.labels:
                    raise ValueError(
                        f"The Doc {example.text[:40]!r} has the class {label!r}, but initialize "
                        f"found {', '.join(map(repr, self.labels))}: initialize with Docs of all "
                        f"classes."
                    )
                truths[i, self.labels.index(label)] = value
                known[i] = 1
        probabilities = self.model.ops.to_numpy(scores)
        loss = -(truths * np.log(probabilities.clip(1e-9))).sum() / len(examples)
        d_scores = known * (probabilities - truths) / len(examples)
        return float(loss), self.model.ops.asarray2f(d_scores)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
        """``entailment_acc``: the share of Docs with the right class."""
        pairs = [
            (best(eg.predicted._.entailment), best(eg.reference._.entailment))
            for eg in examples
            if eg.reference._.entailment
        ]
        right = sum(ours == gold for ours, gold in pairs)
        return {"entailment_acc": right / len(pairs) if pairs else None}


def best(classes: Optional[Dict[str, float]]) -> Optional[str]:
    return max(classes, key=classes.__getitem__) if classes else None
