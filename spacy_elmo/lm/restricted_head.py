"""A head restricted to fewer words, for comparison with one of a smaller vocabulary.

The smaller a vocabulary is, the easier are its words to predict, so perplexities over different
vocabularies cannot be compared. But any head can be restricted: the words left out become
``<UNK>``, whose probability is then the sum of theirs. The biLM stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from .softmax import SoftmaxHead, logits
from .vocabulary import SPECIALS, UNKNOWN, Vocabulary

NAMED = 5  # missing words in a message


class RestrictedHead(nn.Module):
    """A head some of whose words count as ``<UNK>``.

    Args:
        head: the head.
        order: ``(V,)`` indices of its words, the remaining ones first.
        n_words: how many remain.
    """

    def __init__(self, head: SoftmaxHead, order: list[int], n_words: int):
        super().__init__()
        self.n_words = n_words
        self.weight = nn.Parameter(head.weight.detach()[order])
        self.bias = nn.Parameter(head.bias.detach()[order])

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits ``(M, n_words)`` of hidden vectors ``(M, P)``."""
        every = logits(hidden, self.weight, self.bias)
        known, others = every[:, : self.n_words], every[:, self.n_words :]
        unknown = torch.cat([known[:, UNKNOWN : UNKNOWN + 1], others], dim=1)
        total = unknown.logsumexp(dim=1, keepdim=True)
        return torch.cat([known[:, :UNKNOWN], total, known[:, UNKNOWN + 1 :]], dim=1)


def restrict_head(
    head: SoftmaxHead, vocab: Vocabulary, words: Iterable[str], source: str
) -> tuple[RestrictedHead, Vocabulary]:
    """A head restricted to some of its words.

    Args:
        head: the head.
        vocab: its words.
        words: those that remain; the special ones always do.
        source: of these words, for messages.

    Returns:
        The head, and its words in the order that they had.

    Raises:
        ValueError: some are not words of the head, or there are none.
    """
    chosen = dict.fromkeys([*SPECIALS, *words])
    missing = [word for word in chosen if word not in vocab.ids]
    if missing:
        some = ", ".join(map(repr, missing[:NAMED])) + (", …" if len(missing) > NAMED else "")
        raise ValueError(
            f"{source} has {len(missing):,} words that are not among the {len(vocab):,} of the "
            f"head: {some}. Give only words that every head of the comparison has."
        )
    if len(chosen) == len(SPECIALS):
        raise ValueError(f"{source} has no words; give a file of one word per line.")
    known = [i for i, word in enumerate(vocab.words) if word in chosen]
    others = [i for i, word in enumerate(vocab.words) if word not in chosen]
    restricted = RestrictedHead(head, known + others, len(known))
    return restricted.eval(), Vocabulary([vocab.words[i] for i in known])
