"""What the commands read."""

from __future__ import annotations

from pathlib import Path

import pytest
from spacy.cli.init_config import init_config
from spacy.tokens import DocBin

from ..pipeline.helpers import write_language_model
from ..pipeline.learning import make_examples, started
from ..pretraining.helpers import PROSE, config_text, make_config
from .helpers import succeed


@pytest.fixture(scope="package")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    text = folder / "text.txt"
    text.write_text(PROSE.replace("\n", "\n\n") * 3, encoding="utf-8")
    weights = write_language_model(folder / "weights", [*PROSE.split(), "was", "."])
    nlp, *_ = started(weights, steps=1)  # trains its mix
    nlp.to_disk(folder / "pipeline")
    tagger = init_config(lang="xx", pipeline=["tagger"])
    tagger["training"] |= {"max_steps": 1, "eval_frequency": 1}
    tagger.to_disk(folder / "tagger.cfg")
    docs = [example.reference for example in make_examples(nlp)]
    DocBin(docs=docs).to_disk(folder / "docs.spacy")
    config = config_text(make_config(Path("text.txt"), Path("text.txt")))
    (folder / "pretrain.cfg").write_text(config, encoding="utf-8")
    (folder / "log.jsonl").write_text('{"step": 1, "words": 40, "loss": 5.5}\n', encoding="utf-8")
    succeed("tokenize", text, folder / "shards")
    return folder
