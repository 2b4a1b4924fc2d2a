"""`spacy pretrain` for as long as a biLM was trained: the arm "HashEmbedCNN, pretrained".

    python benchmarks/quality/pretrained.py OUT.bin TEXT [TEXT …] --seconds 36000

Pretrains the tok2vec of `arms.py` to predict the first and last four characters of masked words
(spaCy's default), on raw texts or shards, which are read from the beginning again when they end.
The time is that of the process, so that other work on the machine matters little. The weights are
the average over the training.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from arms import ARMS, make_nlp
from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH, Language
from spacy.tokens import Doc
from spacy.training.pretrain import pretrain
from spacy.util import load_config, registry
from tasks import TASKS
from thinc.api import Config

from spacy_elmo.encoding.row_files import RowFiles

CHUNK_TOKENS = 20_000


@registry.readers("benchmarks.UntilTime.v1")
def until_time(paths: list[str], seconds: float) -> Callable[[Language], Iterator[Doc]]:
    """Texts in their order, again and again, until the process has run for so long."""

    def read(nlp: Language) -> Iterator[Doc]:
        end = time.process_time() + seconds
        while True:
            for chunk in chain.from_iterable(RowFiles(path).chunks(CHUNK_TOKENS) for path in paths):
                for row in chunk.rows:
                    doc = nlp.make_doc(row) if isinstance(row, str) else Doc(nlp.vocab, row)
                    if len(doc):
                        yield doc
                    if time.process_time() > end:
                        return

    return read


def until(config: Config, texts: list[str], seconds: float, **settings: str) -> Config:
    """The config of a pretraining on texts, for so long.

    Args:
        config: of the pipeline.
        texts, seconds: see `until_time`.
        settings: of the pretraining.
    """
    config = load_config(DEFAULT_CONFIG_PRETRAIN_PATH).merge(config)
    config["pretraining"] |= {**settings, "max_epochs": 1}
    reader = {"@readers": "benchmarks.UntilTime.v1", "paths": texts, "seconds": seconds}
    config["corpora"] = {"pretrain": reader}
    return config.interpolate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("texts", nargs="+", help="any corpora of `elmo encode`")
    parser.add_argument("--seconds", type=float, required=True, help="of processor time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        config = make_nlp(TASKS["tagger"], ARMS["HashEmbedCNN"], {}).config
        what = {"component": "tagger", "layer": "tok2vec"}
        config = until(config, arguments.texts, arguments.seconds, **what)
        pretrain(config, Path(name), silent=False)
        arguments.out.write_bytes(Path(name, "model-last.bin").read_bytes())


if __name__ == "__main__":
    main()
