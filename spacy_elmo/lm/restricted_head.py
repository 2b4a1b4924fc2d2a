"""A head that tells fewer words apart, to be compared with another of a smaller vocabulary.

The smaller a vocabulary is, the easier are its words to predict, so perplexities with different
ones cannot be compared. But any head can be asked for fewer words: those left out become ``<UNK>``,
whose probability is then the sum of theirs. The model stays what it is, it is only asked less.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from .softmax import SoftmaxHead
from .vocabulary import SPECIALS, UNKNOWN, Vocabulary

NAMED = 5  # missing words in a message


class RestrictedHead(SoftmaxHead):
    """A head some of whose words are one, ``<UNK>``.

    Args:
        head: the head.
        order: ``(V,)`` its words, those that are kept first.
        n_kept: how many they are.
    """

    def __init__(self, head: SoftmaxHead, order: list[int], n_kept: int):
        super().__init__(*head.weight.shape)
        self.n_kept = n_kept
        self.weight.data, self.bias.data = head.weight.data[order], head.bias.data[order]

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits ``(M, n_kept)`` of hidden vectors ``(M, P)``."""
        logits = super().forward(hidden)
        kept, merged = logits[:, : self.n_kept], logits[:, self.n_kept :]
        unknown = torch.cat([kept[:, UNKNOWN : UNKNOWN + 1], merged], dim=1)
        together = unknown.logsumexp(dim=1, keepdim=True)
        return torch.cat([kept[:, :UNKNOWN], together, kept[:, UNKNOWN + 1 :]], dim=1)


def restrict_head(
    head: SoftmaxHead, vocab: Vocabulary, words: Iterable[str], source: str
) -> tuple[SoftmaxHead, Vocabulary]:
    """A head that knows some of its words only.

    Args:
        head: the head.
        vocab: its words.
        words: those to be kept; the special ones always are.
        source: of these words, for messages.

    Returns:
        The head, and its words in the order that they had.

    Raises:
        ValueError: some are not words of the head, or there are none.
    """
    chosen = dict.fromkeys([*SPECIALS, *words])
    missing = [word for word in chosen if word not in vocab.places]
    if missing:
        some = ", ".join(map(repr, missing[:NAMED])) + (", …" if len(missing) > NAMED else "")
        raise ValueError(
            f"{source} has {len(missing):,} words that are not among the {len(vocab):,} of the "
            f"head: {some}. Leave them out: give words that every head to be compared has."
        )
    if len(chosen) == len(SPECIALS):
        raise ValueError(f"{source} has no words; give a file of one word a line.")
    kept = [place for place, word in enumerate(vocab.words) if word in chosen]
    others = [place for place, word in enumerate(vocab.words) if word not in chosen]
    merged = RestrictedHead(head, kept + others, len(kept))
    return merged.eval(), Vocabulary([vocab.words[place] for place in kept])
