"""Static vectors of n-grams, trained by floret (Explosion's compact fastText)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ...util.optional_imports import import_extra
from ...weights.subwords import FloretSettings, Subwords

N_ROWS, VECTOR_DIM = 50_000, 128


def train_floret(sentences: Iterable[Sequence[str]], n_epochs: int, min_count: int) -> Subwords:
    """Train vectors on a text, in one thread.

    Args:
        sentences: the text.
        n_epochs: passes over it.
        min_count: rarer words are not predicted.

    Raises:
        ValueError: floret is not installed, or finds no words.
    """
    floret = import_extra("floret", "subwords", "[training] subword_epochs needs floret", "Config")
    settings = FloretSettings()
    with TemporaryDirectory() as folder:
        text, out = Path(folder, "text.txt"), Path(folder, "table.floret")
        with text.open("w", encoding="utf-8") as file:
            file.writelines(" ".join(words) + "\n" for words in sentences)
        model = floret.train_unsupervised(
            str(text), model="cbow", mode="floret", bucket=N_ROWS, dim=VECTOR_DIM,
            minn=settings.min_n, maxn=settings.max_n, hashCount=settings.n_hashes,
            minCount=min_count, epoch=n_epochs, thread=1, verbose=0,
        )  # fmt: skip
        model.save_floret_vectors(str(out))
        return Subwords.from_floret(out)
