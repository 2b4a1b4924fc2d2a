"""The arms of a comparison: a config without ELMo, and with each of some biLMs."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc, DocBin
from spacy.training.corpus import walk_corpus
from spacy.util import copy_config
from thinc.api import Config

from ..pipeline.add import blocks
from ..pipeline.add.add_elmo import add_elmo, fill
from ..weights.find import find_weights

WITHOUT = "without"


class Training(NamedTuple):
    """One training of one arm.

    Attributes:
        arm: `WITHOUT`, or the name of the weights.
        size: number of training Docs; 0 for all, if no other size is compared.
        seed: the seed of the training and of the sample of Docs.
        config: the complete config.
        folder: has the trained pipeline and its results, and exists when they are complete.
    """

    arm: str
    size: int
    seed: int
    config: Config
    folder: Path

    def __str__(self) -> str:
        arm = "without ELMo" if self.arm == WITHOUT else f"with {self.arm}"
        docs = f", {self.size:,} Docs" if self.size else ""
        return f"{arm}{docs}, seed {self.seed}"


def make_arms(base: Config, weights: Iterable[str]) -> dict[str, Config]:
    """Make the configs to train.

    Args:
        base: a config without ELMo.
        weights: names of biLMs.

    Returns:
        The configs by arm: `WITHOUT`, then the names of the biLMs.

    Raises:
        ValueError: the config has ELMo or a transformer already, or no component can learn from
            ELMo; its training set or dev set is missing; it evaluates only what is not trained yet;
            or the weights cannot be found.
    """
    arms = {name: add_elmo(base, weights=name) for name in weights}
    plain = fill(base)
    plain["training"]["optimizer"] = copy_config(next(iter(arms.values())))["training"]["optimizer"]
    if blocks.ELMO & blocks.kinds_of(plain["components"]):
        raise ValueError("The config has ELMo already. Give one without ELMo, which is added here.")
    settled = plain.interpolate()
    for split in ("train", "dev"):
        path = corpus(settled, split).get("path", ".")
        if not path or not Path(path).exists():
            where = f" at '{path}'" if path else ""
            raise ValueError(f"There is no {split} set{where}. Give one as --paths.{split}.")
    n_steps, every = (settled["training"][name] for name in ("max_steps", "eval_frequency"))
    if 0 < n_steps < every:
        raise ValueError(
            f"Nothing trained would be evaluated: max_steps is {n_steps:,}, below eval_frequency, "
            f"{every:,}. Lower --training.eval_frequency, too."
        )
    return {WITHOUT: plain, **arms}


def corpus(config: Config, split: str) -> dict[str, Any]:
    """The block of the training or the dev corpus."""
    return blocks.get_block(config, tuple(config["training"][f"{split}_corpus"].split(".")))


def plan(
    arms: dict[str, Config], sizes: Sequence[int], n_seeds: int, folder: Path
) -> Iterator[Training]:
    """List all trainings, seed by seed. The names of their folders have a checksum of all that they
    depend on.

    Args:
        arms: the configs, from `make_arms`.
        sizes: numbers of training Docs; 0 for all.
        n_seeds: the number of seeds.
        folder: the folder for all trainings; samples of the training set are written there.

    Raises:
        ValueError: there are fewer training Docs than one of the sizes, or they are not in .spacy
            files.
    """
    docs = read_docs(arms[WITHOUT]) if any(sizes) else []
    if max(sizes) > len(docs):
        raise ValueError(f"--sizes has {max(sizes):,}, but there are {len(docs):,} training Docs.")
    for size in dict.fromkeys(0 if size == len(docs) else size for size in sizes):
        for seed in range(n_seeds):
            sample = folder / f"train-{size}-{seed}.spacy" if size else None
            if sample is not None:
                shuffled = random.Random(seed).sample(docs, len(docs))
                folder.mkdir(parents=True, exist_ok=True)
                DocBin(docs=shuffled[:size], store_user_data=True).to_disk(sample)
            for arm, config in arms.items():
                config = copy_config(config)
                config["training"]["seed"] = seed
                if sample is not None:
                    corpus(config, "train")["path"] = str(sample)
                both = (corpus(config.interpolate(), split) for split in ("train", "dev"))
                data = [Path(block["path"]) for block in both if block.get("path")]
                name = re.sub(r"\W+", "-", arm).strip("-")
                of = checksum(config, data, None if arm == WITHOUT else arm)
                what = f"{name}-{size or 'all'}-{seed}-{of[:8]}"
                yield Training(arm, size or len(docs), seed, config, folder / what)


def read_docs(config: Config) -> list[Doc]:
    """Read the training set.

    Raises:
        ValueError: it is not in .spacy files.
    """
    path = corpus(config.interpolate(), "train").get("path")
    files, vocab = walk_corpus(path, ".spacy") if path else [], spacy.blank("xx").vocab
    if not files:
        raise ValueError("--sizes needs training data in .spacy files. Set --paths.train to them.")
    return [doc for file in files for doc in DocBin().from_disk(file).get_docs(vocab)]


def checksum(config: Config, data: Iterable[Path], weights: str | None) -> str:
    """A checksum of all that a training depends on: the config, the data, the biLM's weights."""
    files = [file for path in data for file in (path, *sorted(path.rglob("*"))) if file.is_file()]
    files += find_weights(weights).files() if weights is not None else []
    digest = sha256(config.to_str().encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
