"""Coreference: the mentions of a text, in clusters of those that refer to the same."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

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

from .inputs import MENTIONS, not_empty
from .layers import Places, feed_forward, first_rows, read_places, softmax_over
from .metrics import CoreferenceScores, Judgement, gap_scores
from .pipes import at_least_one, default_model, factory

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP035, UP045

CLUSTERS = "coref_clusters_"  # and a number: keys of doc.spans
GAP = "gap"  # key of doc.spans: a pronoun and two names
FEMININE = {"she", "her", "hers", "herself"}
MOST_SPANS, MOST_PAIRS = 10_000, 50_000  # that are read at once


class Ranked(NamedTuple):
    """The scores of a Doc.

    Attributes:
        spans: tokens of all candidates, ``(n, 2)``, ends exclusive.
        scores: of each, above 0 for mentions, ``(n,)``.
        kept: candidates that are ranked, in the order of the text, ``(k,)``.
        antecedents: for each the ones before it, as indices of ``kept``; -1: none, ``(k, a)``.
        links: scores of these, above 0 for the same cluster, ``(k, a)``.
    """

    spans: np.ndarray
    scores: np.ndarray
    kept: np.ndarray
    antecedents: np.ndarray
    links: np.ndarray


class SpanRanking(nn.Module):
    """Scores of spans as mentions, and of pairs of these (Lee et al. 2017, in small).

    A span is its first and last token, an attention over its tokens, and its length.
    """

    def __init__(
        self, width: int, hidden: int, dropout: float, max_width: int, max_antecedents: int
    ):
        super().__init__()
        self.max_width, self.max_antecedents = max_width, max_antecedents
        self.first, self.last = nn.Linear(width, hidden), nn.Linear(width, hidden, bias=False)
        self.inside = nn.Linear(width, hidden, bias=False)
        self.attention = feed_forward(width, hidden, dropout, 1)
        self.length = nn.Embedding(max_width + 1, hidden)
        self.mention = feed_forward(hidden, hidden, dropout, 1)
        self.own = nn.Linear(hidden, hidden)
        self.other, self.both = (nn.Linear(hidden, hidden, bias=False) for _ in range(2))
        self.distance = nn.Embedding(10, hidden)
        self.link = nn.Linear(hidden, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor, spans: list[Tensor], most: list[int]) -> list[Tensor]:
        """``(n_rows, width)`` and for each Doc ``(n, 2)`` to ``scores``, ``kept``, ``antecedents``,
        ``links`` of each, see `Ranked`."""
        rows = self.dropout(rows)
        tokens = [self.first(rows), self.last(rows), self.inside(rows), self.attention(rows)]
        return [
            each for one, n in zip(spans, most, strict=True) for each in self.rank(tokens, one, n)
        ]

    def rank(self, tokens: list[Tensor], spans: Tensor, most: int) -> list[Tensor]:
        parts = [self.represent(tokens, part) for part in spans.split(MOST_SPANS)]
        scores = torch.cat([self.mention(part)[:, 0] for part in parts])
        kept = scores.topk(min(most, len(scores))).indices
        kept = kept.sort().values  # candidates are in the order of the text
        g, s = torch.cat(parts)[kept], scores[kept]
        n_antecedents = max(1, min(self.max_antecedents, len(kept) - 1))
        back = torch.arange(1, n_antecedents + 1, device=kept.device)
        antecedents = torch.arange(len(kept), device=kept.device)[:, None] - back
        bucket = (back.float().log2() * 1.5).long().clamp(max=9)
        own, other, distance = self.own(g), self.other(g), self.distance(bucket)
        links = [antecedents.new_zeros((0, n_antecedents)).to(g.dtype)]
        for part in torch.arange(len(kept)).split(max(1, MOST_PAIRS // n_antecedents)):
            j = antecedents[part].clamp(min=0)
            pair = own[part][:, None] + other[j] + self.both(g[part][:, None] * g[j]) + distance
            link = self.link(self.dropout(torch.relu(pair)))[..., 0]
            links.append(link + s[part][:, None] + s[j])
        return [scores, kept, antecedents.clamp(min=-1), torch.cat(links)]

    def represent(self, tokens: list[Tensor], spans: Tensor) -> Tensor:
        first, last, inside, attention = tokens
        start, end = spans[:, :1], spans[:, 1:]
        # Given mentions may be longer: their middle is not read.
        places = start + torch.arange(self.max_width, device=spans.device)
        mask, places = places < end, places.minimum(end - 1)
        weights = softmax_over(attention[places][..., 0], mask)
        head = (weights[..., None] * inside[places]).sum(1)
        length = self.length((end - start)[:, 0].clamp(max=self.max_width))
        return self.dropout(torch.relu(first[start[:, 0]] + last[end[:, 0] - 1] + head + length))


def candidates(doc: Doc, max_width: int) -> np.ndarray:
    """The mentions that are given, or else all spans of a sentence up to a length that neither
    start nor end with a punctuation mark: ``(n, 2)``, in the order of the text.

    Raises:
        ValueError: a given one is empty.
    """
    if MENTIONS in doc.spans:
        spans = not_empty(doc, MENTIONS, doc.spans[MENTIONS])
        given = sorted({(span.start, span.end) for span in spans})
        return np.array(given, dtype="int64").reshape(-1, 2)
    if not len(doc):
        return np.zeros((0, 2), dtype="int64")
    is_word = np.array([not (token.is_punct or token.is_space) for token in doc])
    sentence = np.zeros(len(doc), dtype="int64")
    if doc.has_annotation("SENT_START"):
        sentence = np.cumsum([bool(token.is_sent_start) for token in doc])
    found = []
    for n in range(min(max_width, len(doc))):
        ends = np.arange(n, len(doc))
        fits = (sentence[ends] == sentence[ends - n]) & is_word[ends] & is_word[ends - n]
        found.append(np.stack([ends[fits] - n, ends[fits] + 1], axis=1))
    spans = np.concatenate(found)
    return spans[np.lexsort((spans[:, 1], spans[:, 0]))]


def find_candidates(docs: Sequence[Doc], max_width: int, mentions_per_word: float) -> Places:
    spans = [candidates(doc, max_width) for doc in docs]
    first = first_rows(docs)
    most = [
        len(each) if MENTIONS in doc.spans else 10 + int(mentions_per_word * len(doc))
        for doc, each in zip(docs, spans, strict=True)
    ]
    return {"spans": [each + i for each, i in zip(spans, first, strict=True)], "most": most}


@registry.architectures("six_tasks.Coreference.v1")
def Coreference(
    tok2vec: Model[List[Doc], List[Floats2d]],
    width: int = 128,
    hidden_width: int = 128,
    dropout: float = 0.2,
    max_width: int = 10,
    mentions_per_word: float = 0.3,
    max_antecedents: int = 60,
) -> Model[List[Doc], Any]:
    """``six_tasks.Coreference.v1``: span ranking.

    Args:
        tok2vec: any token vectors.
        width: to which they are reduced.
        hidden_width: of spans and pairs.
        dropout: in their layers.
        max_width: the most tokens of a mention.
        mentions_per_word: how many candidates are ranked, as a share of the words, beside ten.
        max_antecedents: with how many before it each is compared.

    Returns:
        Docs to four arrays for each of them, see `SpanRanking`.

    Raises:
        ValueError: ``max_width`` is below 1, or ``mentions_per_word`` not above 0.
    """
    at_least_one(max_width=max_width)
    if mentions_per_word <= 0:
        raise ValueError(f"mentions_per_word is {mentions_per_word}: set it above 0.")
    module = SpanRanking(width, hidden_width, dropout, max_width, max_antecedents)
    places = partial(find_candidates, max_width=max_width, mentions_per_word=mentions_per_word)
    model = read_places(tok2vec, width, module, places)
    model.attrs["max_width"] = max_width
    return model


@factory(
    "coreference",
    assigns=["doc.spans"],
    default_config={"model": default_model("six_tasks.Coreference.v1"), "singletons": True},
    default_score_weights={"coref_f": 1.0},
)
def make_coreference(nlp: Language, name: str, model: Model, singletons: bool) -> "Coreferences":
    return Coreferences(nlp.vocab, model, name, singletons=singletons)


class Coreferences(TrainablePipe):
    """The component `coreference`: sets ``doc.spans["coref_clusters_1"]`` and so on.

    It finds the mentions, within sentences where the Doc has them, or takes those in
    ``doc.spans["mentions"]``, see `inputs.mark_mentions`.

    Attributes:
        singletons: whether mentions that nothing else refers to are clusters, as in LitBank.
    """

    def __init__(
        self, vocab: Vocab, model: Model, name: str = "coreference", *, singletons: bool = True
    ):
        self.vocab, self.model, self.name = vocab, model, name
        self.singletons = singletons
        self.cfg: Dict[str, Any] = {}

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Find out the shapes of the model."""
        docs = [eg.predicted for eg in get_examples() if len(eg.predicted)]
        self.model.initialize(X=docs[:3])

    def predict(self, docs: Sequence[Doc]) -> List[Ranked]:
        filled = [doc for doc in docs if len(doc)]
        ranked = iter(self.split(filled, self.model.predict(filled)) if filled else [])
        none = np.zeros(0, dtype="int64")
        empty = Ranked(none.reshape(0, 2), none, none, none.reshape(0, 1), none.reshape(0, 1))
        return [next(ranked) if len(doc) else empty for doc in docs]

    def split(self, docs: Sequence[Doc], scores: Sequence[Any]) -> List[Ranked]:
        """The output of the model, Doc by Doc."""
        arrays = [self.model.ops.to_numpy(each) for each in scores]
        spans = [candidates(doc, self.model.attrs["max_width"]) for doc in docs]
        return [Ranked(each, *arrays[4 * i : 4 * i + 4]) for i, each in enumerate(spans)]

    def set_annotations(self, docs: Sequence[Doc], scores: Sequence[Ranked]) -> None:
        for doc, ranked in zip(docs, scores, strict=True):
            for key in [key for key in doc.spans if key.startswith(CLUSTERS)]:
                del doc.spans[key]
            for n, cluster in enumerate(find_clusters(ranked, self.singletons), 1):
                doc.spans[f"{CLUSTERS}{n}"] = [doc[start:end] for start, end in cluster]

    def get_loss(
        self, examples: Sequence[Example], scores: Sequence[Any]
    ) -> Tuple[float, List[Any]]:
        """Cross-entropy of the candidates as mentions, and the marginal likelihood of the
        antecedents that are in the same cluster; the sum for a batch by its number of words."""
        docs = [eg.predicted for eg in examples]
        loss, gradients = 0.0, []
        n = max(1, sum(map(len, docs)))
        for example, ranked in zip(examples, self.split(docs, scores), strict=True):
            cluster_of = {
                mention: i for i, c in enumerate(clusters_of(example.reference)) for mention in c
            }
            gold = np.array([cluster_of.get((s, e), -1) for s, e in ranked.spans.tolist()])
            part, d_scores = 0.0, np.zeros_like(ranked.scores)
            if MENTIONS not in example.predicted.spans:
                part, d_scores = mention_loss(ranked.scores, gold.reshape(-1) >= 0)
            other, d_links = link_loss(ranked, gold.reshape(-1))
            loss += (part + other) / n
            d = [d_scores / n, None, None, d_links / n]
            gradients += [None if x is None else self.model.ops.asarray(x) for x in d]
        return loss, gradients

    def score(self, examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
        """``coref_muc``, ``coref_b3``, ``coref_ceaf`` and their mean ``coref_f``; ``gap_f`` and its
        kin where the references have a group ``gap``: a pronoun and two names."""
        total, judgements, n = CoreferenceScores(), [], 0
        for example in examples:
            ours, gold = clusters_of(example.predicted), clusters_of(example.reference)
            total.add(ours, gold)
            n += len(gold)
            if GAP in example.reference.spans:
                judgements += judge(ours, gold, example.reference.spans[GAP])
        found: Dict[str, Any] = total.scores() if n else {"coref_f": None}
        return {**found, **(gap_scores(judgements) if judgements else {})}


def clusters_of(doc: Doc) -> List[List[Tuple[int, int]]]:
    """The clusters of a Doc, as first tokens and the ones behind the last."""
    groups = [doc.spans[key] for key in doc.spans if key.startswith(CLUSTERS)]
    return [sorted({(span.start, span.end) for span in group}) for group in groups]


def find_clusters(ranked: Ranked, singletons: bool) -> List[List[Tuple[int, int]]]:
    """Each mention joins the cluster of its best antecedent, if it has one with a score above 0."""
    cluster: Dict[int, int] = {}
    for i in range(len(ranked.kept)):
        links = np.where(ranked.antecedents[i] >= 0, ranked.links[i], -np.inf)
        best = int(links.argmax())
        if links[best] > 0:
            j = int(ranked.antecedents[i, best])
            cluster[i] = cluster.setdefault(j, j)
        elif singletons and ranked.scores[ranked.kept[i]] > 0:
            cluster[i] = i
    found: Dict[int, List[Tuple[int, int]]] = defaultdict(list)
    for i in sorted(cluster):
        start, end = ranked.spans[ranked.kept[i]].tolist()
        found[cluster[i]].append((start, end))
    return list(found.values())


def mention_loss(scores: np.ndarray, is_mention: np.ndarray) -> Tuple[float, np.ndarray]:
    """Cross-entropy of candidates, and its gradient."""
    loss = np.logaddexp(0, np.where(is_mention, -scores, scores)).sum()
    return float(loss), sigmoid(scores) - is_mention.astype(scores.dtype)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x))


def link_loss(ranked: Ranked, gold: np.ndarray) -> Tuple[float, np.ndarray]:
    """Minus the logarithm of the probability of the right antecedents, or of none with a score of 0
    (Lee et al. 2017, equation 10), and its gradient.

    Args:
        ranked: the scores.
        gold: cluster of each candidate; -1: it is no mention.
    """
    k = len(ranked.kept)
    if k == 0:
        return 0.0, np.zeros_like(ranked.links)
    own = gold[ranked.kept]
    is_there = ranked.antecedents >= 0
    right = is_there & (own[ranked.antecedents] == own[:, None]) & (own[:, None] >= 0)
    right = np.concatenate([~right.any(1, keepdims=True), right], axis=1)
    scores = np.where(is_there, ranked.links, -np.inf)
    scores = np.concatenate([np.zeros((k, 1), dtype=scores.dtype), scores], axis=1)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    among = weights * right
    sums, right_sums = weights.sum(1, keepdims=True), among.sum(1, keepdims=True) + 1e-30
    d_scores = weights / sums - among / right_sums
    return float(np.log(sums / right_sums).sum()), d_scores[:, 1:].astype(ranked.links.dtype)


def judge(
    ours: List[List[Tuple[int, int]]], gold: List[List[Tuple[int, int]]], asked: Iterable[Span]
) -> List[Judgement]:
    """Whether a pronoun and each of two names are in one cluster, by ours and by the gold one."""
    pronoun, *names = asked

    def together(clusters: List[List[Tuple[int, int]]], name: Span) -> bool:
        return any(
            (pronoun.start, pronoun.end) in cluster
            and any(start < name.end and name.start < end for start, end in cluster)
            for cluster in clusters
        )

    is_feminine = pronoun.text.lower() in FEMININE
    return [Judgement(together(ours, n), together(gold, n), is_feminine) for n in names]
