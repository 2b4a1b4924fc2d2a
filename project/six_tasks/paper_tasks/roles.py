"""Semantic roles: the arguments of each marked predicate."""

from collections.abc import Iterable, Sequence
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, iob_to_biluo, tags_to_entities
from spacy.util import registry
from thinc.api import Model, Softmax_v2
from thinc.types import Floats2d
from torch import Tensor, nn

from .inputs import PREDICATES, given_spans, not_empty
from .layers import BiLSTM, Places, first_rows, indices, is_word, read_places
from .metrics import Counts, join_continued
from .pipes import LabelledPipe, at_least_one, default_model, factory

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP035, UP045

ADVICE = "mark_predicates(doc, indices)"
ROLES = "roles"
FARTHEST = 12  # distance from a predicate, in words
MOST_CELLS = 20_000  # tokens times predicates that are read at once


class Scope(NamedTuple):
    """A predicate and the tokens that may be its arguments: those of its sentence."""

    doc: int
    start: int
    end: int
    predicate: Span


class PredicateLSTM(nn.Module):
    """A biLSTM for each predicate, which reads each token, its distance from the predicate, and the
    predicate (He et al. 2017, in small). What it reads also goes past it: the LSTM alone learns
    for hundreds of steps nothing but the frequencies of tags."""

    def __init__(self, width: int, hidden: int, depth: int, dropout: float):
        super().__init__()
        self.distance = nn.Embedding(2 * FARTHEST + 1, 32)
        n_in = 2 * width + 32
        self.lstm, self.past = BiLSTM(n_in, hidden, depth, dropout), nn.Linear(n_in, 2 * hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, rows: Tensor, tokens: Tensor, distances: Tensor, predicates: Tensor
    ) -> Tensor:
        """``(n_rows, width)``, ``(n, longest)`` and ``(n,)`` to ``(n_words, 2 · hidden)``."""
        found = [rows[:0, :1].expand(0, self.past.out_features)]
        words = tokens > 0
        step = max(1, MOST_CELLS // tokens.shape[1])
        for i in range(0, len(tokens), step):
            part, mask = tokens[i : i + step], is_word(tokens[i : i + step])
            predicate = rows[predicates[i : i + step], None].expand(-1, part.shape[1], -1)
            distance = self.distance(distances[i : i + step])
            read = self.dropout(torch.cat([rows[part], predicate, distance], dim=-1))
            states = self.lstm(read, mask) + torch.relu(self.past(read))
            found.append(self.dropout(states)[words[i : i + step]])
        return torch.cat(found)


def find_scopes(docs: Sequence[Doc]) -> List[Scope]:
    """All predicates of a batch.

    Raises:
        ValueError: a Doc has none marked, or an empty span.
    """
    scopes = []
    for i, doc in enumerate(docs):
        has_sents = doc.has_annotation("SENT_START")
        for span in not_empty(doc, PREDICATES, given_spans(doc, PREDICATES, ADVICE)):
            sent = span.sent if has_sents else doc[:]
            scopes.append(Scope(i, sent.start, sent.end, span))
    return scopes


def find_predicates(docs: Sequence[Doc]) -> Places:
    first, scopes = first_rows(docs), find_scopes(docs)
    tokens = indices([(first[s.doc] + s.start, first[s.doc] + s.end) for s in scopes])
    distances = np.zeros_like(tokens)
    for i, (_, start, end, predicate) in enumerate(scopes):
        places = np.arange(start, end)
        before, behind = places - predicate.start, places - predicate.end + 1
        away = np.minimum(before, 0) + np.maximum(behind, 0)  # 0 in the predicate
        distances[i, : end - start] = away.clip(-FARTHEST, FARTHEST) + FARTHEST
    roots = [first[s.doc] + s.predicate.start for s in scopes]
    return {
        "tokens": tokens,
        "distances": distances,
        "predicates": np.array(roots, dtype="int64"),
    }


@registry.architectures("six_tasks.SemanticRoles.v1")
def SemanticRoles(
    tok2vec: Model[List[Doc], List[Floats2d]],
    width: int = 128,
    hidden_width: int = 64,
    depth: int = 2,
    dropout: float = 0.2,
    nO: Optional[int] = None,
) -> Model[List[Doc], Floats2d]:
    """``six_tasks.SemanticRoles.v1``: token vectors once for each Doc, a biLSTM for each predicate.

    Args:
        tok2vec: any token vectors.
        width: to which they are reduced.
        hidden_width: of each direction of the LSTM.
        depth: its layers.
        dropout: at its input, between its layers and at its output.
        nO: number of tags; None: found out from the data.

    Returns:
        Docs to probabilities of tags ``(n_words, nO)``, for each word of each predicate's sentence,
        in the order of the predicates.

    Raises:
        ValueError: ``depth`` is below 1.
    """
    at_least_one(depth=depth)
    module = PredicateLSTM(width, hidden_width, depth, dropout)
    return read_places(tok2vec, width, module, find_predicates, Softmax_v2(nO, 2 * hidden_width))


@factory(
    "semantic_roles",
    assigns=["doc.spans"],
    default_config={"model": default_model("six_tasks.SemanticRoles.v1")},
    default_score_weights={"roles_f": 1.0, "roles_p": 0.0, "roles_r": 0.0},
)
def make_semantic_roles(nlp: Language, name: str, model: Model) -> "RoleLabeller":
    return RoleLabeller(nlp.vocab, model, name)


class RoleLabeller(LabelledPipe):
    """The component `semantic_roles`: sets ``doc.spans["roles"]``, labelled spans.

    Reads ``doc.spans["predicates"]``, see `inputs.mark_predicates`. The ``id`` of a span is the
    index of its predicate's first token, see `roles_of`.
    """

    no_labels = "No training Doc has roles: set doc.spans['roles'], see roles_of."

    @property
    def tags(self) -> List[str]:
        return ["O", *(f"{part}-{label}" for label in self.labels for part in "BI")]

    @property
    def n_outputs(self) -> int:
        return len(self.tags)

    def labels_of(self, example: Example) -> Iterable[str]:
        return (span.label_ for span in example.reference.spans.get(ROLES, []))

    def predict(self, docs: Sequence[Doc]) -> Floats2d:
        if not find_scopes(docs):
            return self.model.ops.alloc2f(0, len(self.tags))
        return self.model.predict(docs)

    def set_annotations(self, docs: Sequence[Doc], scores: Floats2d) -> None:
        rows = np.log(self.model.ops.to_numpy(scores).clip(1e-9))
        found: List[List[Span]] = [[] for _ in docs]
        allowed = allowed_moves(self.tags)
        for scope, part in split_rows(docs, rows):
            doc = docs[scope.doc]
            tags = iob_to_biluo([self.tags[i] for i in viterbi(part, allowed)])
            for label, start, last in tags_to_entities(tags):
                bounds = scope.start + start, scope.start + last + 1
                found[scope.doc].append(Span(doc, *bounds, label, span_id=scope.predicate.start))
        for doc, spans in zip(docs, found, strict=True):
            doc.spans[ROLES] = spans

    def get_loss(self, examples: Sequence[Example], scores: Floats2d) -> Tuple[float, Floats2d]:
        """Cross-entropy of the tags, the mean of all words."""
        probabilities = self.model.ops.to_numpy(scores)
        truths = np.zeros_like(probabilities)
        numbers = {tag: i for i, tag in enumerate(self.tags)}
        for scope, part in split_rows([eg.predicted for eg in examples], truths):
            gold = roles_of(examples[scope.doc].reference, scope.predicate.start)
            tags = np.zeros(len(part), dtype=int)
            for span in gold:
                if scope.start <= span.start and span.end <= scope.end:
                    tags[span.start - scope.start : span.end - scope.start] = numbers.get(
                        f"I-{span.label_}", 0
                    )
                    tags[span.start - scope.start] = numbers.get(f"B-{span.label_}", 0)
            part[np.arange(len(part)), tags] = 1
        n = max(1, len(truths))
        loss = -(truths * np.log(probabilities.clip(1e-9))).sum() / n
        return float(loss), self.model.ops.asarray2f((probabilities - truths) / n)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
        """``roles_p``, ``roles_r``, ``roles_f`` as CoNLL-2005's script has them: whole arguments
        with their labels, without the predicates; a continued argument is one."""
        counts = Counts()
        for example in examples:
            for predicate in example.reference.spans.get(PREDICATES, []):
                sides = (example.predicted, example.reference)
                counts.add(*(arguments(roles_of(doc, predicate.start)) for doc in sides))
        return {
            "roles_p": counts.precision,
            "roles_r": counts.recall,
            "roles_f": counts.f1,
        }


def roles_of(doc: Doc, predicate: int) -> List[Span]:
    """The roles of a predicate, in their order.

    Args:
        doc: with ``doc.spans["roles"]``, whose spans have the predicate as their ``id``.
        predicate: index of its first token.
    """
    return sorted(span for span in doc.spans.get(ROLES, []) if span.id == predicate)


def arguments(spans: Iterable[Span]) -> set[Any]:
    """Labels and places of the arguments, without the predicate and what continues it."""
    joined = join_continued((s.start, s.end, s.label_) for s in spans)
    return {(label, places) for label, places in joined if label != "V"}


def split_rows(docs: Sequence[Doc], rows: np.ndarray) -> Iterable[Tuple[Scope, np.ndarray]]:
    """The rows of each predicate."""
    start = 0
    for scope in find_scopes(docs):
        end = start + scope.end - scope.start
        yield scope, rows[start:end]
        start = end


def allowed_moves(tags: Sequence[str]) -> np.ndarray:
    """Costs ``(n_tags, n_tags)`` from one tag to the next: 0, or infinity if I follows another
    label."""
    costs = np.zeros((len(tags), len(tags)), dtype="float32")
    for j, tag in enumerate(tags):
        if tag.startswith("I-"):
            costs[:, j] = [0 if other[2:] == tag[2:] else np.inf for other in tags]
    return costs


def viterbi(scores: np.ndarray, costs: np.ndarray) -> List[int]:
    """The best sequence of tags that is allowed, starting as if after the first tag, O.

    Args:
        scores: log probabilities, ``(n_words, n_tags)``.
        costs: see `allowed_moves`.
    """
    if not len(scores):
        return []
    best, back = scores[0] - costs[0], []
    for row in scores[1:]:
        each = best[:, None] - costs
        back.append(each.argmax(0))
        best = each.max(0) + row
    path = [int(best.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1]
