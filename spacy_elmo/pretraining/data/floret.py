"""Static vectors of n-grams, trained by floret (Explosion's compact fastText)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ...util.optional_imports import import_extra
from ...weights.subwords import FloretSettings, Subwords
from ..config import TrainingSettings


def train_floret(
    sentences: Iterable[Sequence[str]], settings: TrainingSettings, min_count: int
) -> Subwords:
    """Train vectors on a text, in one thread.

    Args:
        sentences: the text.
        settings: the passes over it, and the shape of the table.
        min_count: rarer words are not predicted.

    Raises:
        ValueError: floret is not installed, or finds no words.
    """
    floret = import_extra("floret", "subwords", "[training] subword_epochs needs floret", "Config")
    ngrams = FloretSettings()
    with TemporaryDirectory() as folder:
        text, out = Path(folder, "text.txt"), Path(folder, "table.floret")
        with text.open("w", encoding="utf-8") as file:
            file.writelines(" ".join(words) + "\n" for words in sentences)
        model = floret.train_unsupervised(
            str(text), model="cbow", mode="floret", minn=ngrams.min_n, maxn=ngrams.max_n,
            hashCount=ngrams.n_hashes, bucket=settings.subword_rows, dim=settings.subword_dim,
            minCount=min_count, epoch=settings.subword_epochs, thread=1, verbose=0,
        )  # fmt: skip
        model.save_floret_vectors(str(out))
        return Subwords.from_floret(out)
