"""Question answering: the span of a passage that answers a question."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from .inputs import PASSAGE, QUESTION, given_text
from .layers import BiLSTM, Places, first_rows, indices, is_word, read_places, softmax_over
from .metrics import exact_match, token_f1
from .pipes import at_least_one, default_model, factory

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP035, UP045

ADVICE = "make_question(nlp, question, passage)"
ANSWERS = "answers"

Doc.set_extension("answers", default=None, force=True)


class AttentionFlow(nn.Module):
    """Attention from the passage to the question and back (BiDAF, Seo et al. 2017), in small.

    Beside its vector, each token has a mark if the other text has it too (Chen et al. 2017).
    """

    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__()
        d = 2 * hidden
        self.context = BiLSTM(width + 1, hidden)
        self.similarity = nn.ParameterList([nn.Parameter(torch.randn(d) / d**0.5) for _ in "hub"])
        self.model = BiLSTM(4 * d, hidden)
        self.end = BiLSTM(d, hidden)
        self.start_score, self.end_score = nn.Linear(5 * d, 1), nn.Linear(5 * d, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, rows: Tensor, question: Tensor, passage: Tensor, q_marks: Tensor, p_marks: Tensor
    ) -> Tensor:
        """``(n_rows, width)`` and ``(batch, n)`` to scores of start and end, ``(batch, n, 2)``."""
        in_q, in_p = is_word(question), is_word(passage)
        u = self.read(rows, question, q_marks, in_q)
        h = self.read(rows, passage, p_marks, in_p)
        w_h, w_u, w_both = self.similarity
        scores = (h @ w_h)[:, :, None] + (u @ w_u)[:, None] + (h * w_both) @ u.transpose(1, 2)
        u_for_h = softmax_over(scores, in_q[:, None]) @ u
        best = scores.masked_fill(~in_q[:, None], -1e4).amax(2)
        h_for_all = softmax_over(best, in_p)[:, None] @ h
        g = self.dropout(torch.cat([h, u_for_h, h * u_for_h, h * h_for_all], dim=-1))
        m = self.model(g, in_p)
        starts = self.start_score(torch.cat([g, self.dropout(m)], dim=-1))
        ends = self.end_score(torch.cat([g, self.dropout(self.end(m, in_p))], dim=-1))
        return torch.cat([starts, ends], dim=-1)

    def read(self, rows: Tensor, places: Tensor, marks: Tensor, mask: Tensor) -> Tensor:
        return self.context(self.dropout(torch.cat([rows[places], marks[..., None]], -1)), mask)


def find_texts(docs: Sequence[Doc]) -> Places:
    questions = [given_text(doc, QUESTION, ADVICE) for doc in docs]
    passages = [given_text(doc, PASSAGE, ADVICE) for doc in docs]
    found: Dict[str, Any] = {}
    norms = [[token.norm_ for token in doc] for doc in docs]
    for key, marks, own, other in (
        (QUESTION, "q_marks", questions, passages),
        (PASSAGE, "p_marks", passages, questions),
    ):
        first = first_rows(docs)
        found[key] = indices([(i + a, i + b) for i, (a, b) in zip(first, own, strict=True)])
        found[marks] = np.zeros(found[key].shape, dtype="float32")
        for i, words in enumerate(norms):
            known = set(words[slice(*other[i])])
            found[marks][i, : own[i][1] - own[i][0]] = [w in known for w in words[slice(*own[i])]]
    return found


@registry.architectures("six_tasks.QuestionAnswering.v1")
def QuestionAnswering(
    tok2vec: Model[List[Doc], List[Floats2d]],
    width: int = 96,
    hidden_width: int = 64,
    dropout: float = 0.2,
) -> Model[List[Doc], Any]:
    """``six_tasks.QuestionAnswering.v1``: BiDAF in small.

    Args:
        tok2vec: any token vectors.
        width: to which they are reduced.
        hidden_width: of each direction of the three LSTMs.
        dropout: at the input and the output of the LSTMs.

    Returns:
        Docs to scores of start and end ``(n_docs, longest passage, 2)``.
    """
    module = AttentionFlow(width, hidden_width, dropout)
    return read_places(tok2vec, width, module, find_texts)


@factory(
    "question_answering",
    assigns=["doc.spans"],
    default_config={"model": default_model("six_tasks.QuestionAnswering.v1"), "max_answer": 30},
    default_score_weights={"answer_f1": 1.0, "answer_em": 0.0},
)
def make_question_answering(
    nlp: Language, name: str, model: Model, max_answer: int
) -> "QuestionAnswerer":
    return QuestionAnswerer(nlp.vocab, model, name, max_answer=max_answer)


class QuestionAnswerer(TrainablePipe):
    """The component `question_answering`: sets ``doc.spans["answers"]``, a span of the passage.

    Reads ``doc.spans["question"]`` and ``doc.spans["passage"]``, see `inputs.make_question`. The
    group is empty if the passage has no words. It learns from ``doc.spans["answers"]``, and is
    scored by their texts, or by those in ``doc._.answers`` where tokens do not fit.

    Attributes:
        max_answer: the most tokens of an answer.

    Raises:
        ValueError: ``max_answer`` is below 1.
    """

    def __init__(
        self, vocab: Vocab, model: Model, name: str = "question_answering", *, max_answer: int = 30
    ):
        self.vocab, self.model, self.name = vocab, model, name
        at_least_one(max_answer=max_answer)
        self.max_answer = max_answer
        self.cfg: Dict[str, Any] = {}

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Find out the shapes of the model."""
        docs = [eg.predicted for eg in get_examples() if len(eg.predicted)]
        self.model.initialize(X=docs[:10])

    def predict(self, docs: Sequence[Doc]) -> Any:
        if not any(len(doc) for doc in docs):
            return self.model.ops.alloc3f(len(docs), 1, 2)
        return self.model.predict(docs)

    def set_annotations(self, docs: Sequence[Doc], scores: Any) -> None:
        for doc, rows in zip(docs, self.model.ops.to_numpy(scores), strict=True):
            first, last = given_text(doc, PASSAGE, ADVICE)
            found: List[Span] = []
            if first < last:
                start, end = best_span(rows[: last - first], self.max_answer)
                found.append(doc[first + start : first + end])
            doc.spans[ANSWERS] = found

    def get_loss(self, examples: Sequence[Example], scores: Any) -> Tuple[float, Any]:
        """Cross-entropy of the first tokens and the last ones, over the passage."""
        rows = self.model.ops.to_numpy(scores)
        d_rows, loss = np.zeros_like(rows), 0.0
        for i, example in enumerate(examples):
            first, last = given_text(example.predicted, PASSAGE, ADVICE)
            gold = [
                (span.start - first, span.end - 1 - first)
                for span in example.reference.spans.get(ANSWERS, [])
                if first <= span.start and span.end <= last
            ]
            for side in (0, 1) if gold else ():
                logits = rows[i, : last - first, side]
                probabilities = np.exp(logits - logits.max())
                probabilities /= probabilities.sum()
                truth = np.zeros_like(probabilities)
                for each in gold:
                    truth[each[side]] += 1 / len(gold)
                loss -= float((truth * np.log(probabilities.clip(1e-9))).sum())
                d_rows[i, : last - first, side] = probabilities - truth
        n = max(1, len(examples))
        return loss / n, self.model.ops.asarray(d_rows / n)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
        """``answer_em`` and ``answer_f1``: means over the questions, as SQuAD's script has them."""
        matches, f1s = [], []
        for example in examples:
            gold = example.reference._.answers
            gold = gold or [span.text for span in example.reference.spans.get(ANSWERS, [])]
            if gold:
                ours = "".join(span.text for span in example.predicted.spans.get(ANSWERS, []))
                matches.append(max(exact_match(ours, text) for text in gold))
                f1s.append(max(token_f1(ours, text) for text in gold))
        n = len(matches)
        return {
            "answer_em": sum(matches) / n if n else None,
            "answer_f1": sum(f1s) / n if n else None,
        }


def best_span(scores: np.ndarray, longest: int) -> Tuple[int, int]:
    """The first token and the one behind the last of the span with the largest sum of scores.

    Args:
        scores: of start and end, ``(n, 2)``.
        longest: the most tokens of a span.
    """
    best = (-np.inf, 0, 1)
    for length in range(min(longest, len(scores))):
        sums = scores[: len(scores) - length, 0] + scores[length:, 1]
        start = int(sums.argmax())
        if sums[start] > best[0]:
            best = (float(sums[start]), start, start + length + 1)
    return best[1], best[2]
