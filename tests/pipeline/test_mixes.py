"""`spacy_elmo.mixes`, and the logger that prints and saves them."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training.loop import train_while_improving
from spacy.util import registry
from thinc.api import Adam, Config

import spacy_elmo
from spacy_elmo.architectures import ConsoleLogger

from .helpers import N_LAYERS, make_nlp
from .learning import (
    EMBED,
    LISTENER,
    make_examples,
    make_inline,
    make_pipeline,
    start,
    started,
)

OWN_MIX = {"@architectures": "spacy-elmo.ElmoListener.v1", "dropout": 0.0, "mix_l2": 0.0}
ENCODE = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": 8,
    "window_size": 1,
    "maxout_pieces": 2,
    "depth": 1,
}
TWO_MIXES = {
    "@architectures": "spacy-elmo.Tok2Vec.v1",
    "elmo": {**OWN_MIX, "initial_weights": [9.0, 0.0, 0.0]},
    "embed": EMBED,
    "encode": ENCODE,
    "output_elmo": {**OWN_MIX, "initial_weights": [0.0, 0.0, 9.0], "gamma": 0.5},
}


def test_names_and_numbers(weights: Path, tmp_path: Path) -> None:
    nlp, *_ = started(weights, TWO_MIXES)
    nlp.to_disk(tmp_path / "nlp")
    for pipeline in (nlp, spacy.load(tmp_path / "nlp")):
        found = {(mix.component, mix.listener): mix for mix in spacy_elmo.mixes(pipeline)}
        own = {("elmo", "doc.tensor")}  # which nobody has needed so far
        assert set(found) - own == {("tagger", "elmo"), ("tagger", "output_elmo")}
        at_input, at_output = found["tagger", "elmo"], found["tagger", "output_elmo"]
        s = np.exp([9.0, 0.0, 0.0])
        assert np.allclose(at_input.weights, s / s.sum(), atol=1e-6)
        assert np.allclose(at_output.weights, (s / s.sum())[::-1], atol=1e-6)
        assert (at_input.gamma, at_output.gamma) == (1.0, 0.5)
        assert not any(mix.is_trained for mix in found.values())


@pytest.mark.parametrize("name", ["parser", "ner", "tagger", "textcat", "spancat"])
def test_names_of_all_kinds_of_components(weights: Path, name: str) -> None:
    """Those that the config shows: parsers, too, hide the listener in a larger part."""
    parts = (OWN_MIX, {"@architectures": "spacy-elmo.Tok2Vec.v1", "elmo": OWN_MIX, "embed": EMBED})
    for tok2vec, expected in zip(parts, ("tok2vec", "elmo"), strict=True):
        nlp = make_nlp(weights)
        config = nlp.get_factory_meta(name).default_config["model"]
        config = json.loads(json.dumps(config))
        config["tok2vec"] = tok2vec
        nlp.add_pipe(name, config={"model": config})
        if name not in ("tagger", "spancat"):
            nlp.get_pipe(name).add_label("A")
            nlp.get_pipe(name).add_label("B")
        elif name == "spancat":
            nlp.get_pipe(name).add_label("A")
        nlp.initialize(lambda nlp=nlp: make_examples(nlp))
        found = [mix.listener for mix in spacy_elmo.mixes(nlp) if mix.component == name]
        assert found == [expected]


def test_the_shared_mix_and_one_without_a_component(weights: Path) -> None:
    nlp, *_ = started(weights, LISTENER, steps=1)
    [shared] = spacy_elmo.mixes(nlp)
    assert (shared.component, shared.listener) == ("elmo", "doc.tensor")
    assert shared.gamma != 1.0 and shared.is_trained
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    assert [mix.listener for mix in spacy_elmo.mixes(nlp)] == ["doc.tensor", "tok2vec"]
    inline = make_inline(weights)
    start(inline)
    [mix] = spacy_elmo.mixes(inline)
    assert mix.component == "tagger"
    assert len(mix.weights) == N_LAYERS


def test_a_pipeline_without_any() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    assert spacy_elmo.mixes(nlp) == []
    nlp.add_pipe("elmo")
    assert spacy_elmo.mixes(nlp) == []  # it does not know its biLM yet


class Terminal(io.StringIO):
    """What is printed; no terminal if a test does not make it one."""


def train_logged(nlp: Language, logger: Any) -> str:
    """As `spacy train` does it; what is printed."""
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.config["training"]["score_weights"] = {"tag_acc": 1.0}
    printed = Terminal()
    log_step, finalize = logger(nlp, printed, printed)
    steps = train_while_improving(
        nlp,
        Adam(0.01),
        ((epoch, examples) for epoch in range(7)),
        lambda: (0.5, {"tag_acc": 0.5}),
        dropout=0.1,
        eval_frequency=3,
        accumulate_gradient=1,
        patience=0,
        max_steps=6,
        exclude=[],
        annotating_components=[],
        before_update=None,
    )
    for _, info, is_best in steps:
        log_step(info if is_best is not None else None)
    finalize()
    return printed.getvalue()


def test_the_logger(weights: Path) -> None:
    nlp = make_pipeline(weights, TWO_MIXES)
    printed = train_logged(nlp, ConsoleLogger())
    assert "LOSS TAGGER" in printed
    assert "TAG_ACC" in printed
    assert printed.count("tagger elmo: s 1.000 0.000 0.000, γ") == 3
    assert "elmo doc.tensor" not in printed  # nobody trains it
    [last] = [mix for mix in spacy_elmo.mixes(nlp) if mix.listener == "output_elmo"]
    shown = " ".join(f"{s:.3f}" for s in last.weights)
    assert printed.count("tagger output_elmo: s") == 3
    assert f"tagger output_elmo: s {shown}, γ {last.gamma:.3f}\n" in printed
    assert "sentences from the cache so far: 0.0% of" in printed
    assert "sentences from the cache so far: 8" in printed  # all but those of the first epoch
    assert not nlp.get_pipe("elmo").bilm.cache.is_on  # the training has ended


def test_the_logger_sees_a_cache_that_came_later(weights: Path) -> None:
    """An elmo component among the frozen ones is not initialized; its biLM is loaded late."""
    nlp = make_pipeline(weights, OWN_MIX)
    examples = make_examples(nlp)
    with nlp.select_pipes(disable="elmo"):
        nlp.initialize(lambda: examples)
    nlp.config["training"]["score_weights"] = {"tag_acc": 1.0}
    printed = io.StringIO()
    log_step, finalize = ConsoleLogger()(nlp, printed, printed)
    shim = nlp.get_pipe("elmo").bilm
    assert not shim.is_loaded
    for number in range(3):
        losses = {"elmo": 0.0, "tagger": 0.0}
        nlp.update(examples, losses=losses, exclude=["elmo"], annotates=["elmo"])
        scores = {"score": 0.5, "other_scores": {"tag_acc": 0.5}}
        log_step({"epoch": 0, "step": number, "losses": losses, **scores})
    assert "sentences from the cache so far: 50.0%" in printed.getvalue()
    finalize()
    assert not shim.cache.is_on


@pytest.mark.parametrize("version", ["v1", "v2", "v3"])
def test_a_block_of_spacys_logger_needs_another_name_alone(version: str) -> None:
    """As `spacy init config` (v1) and `fill-config` write it; every value that spaCy allows."""
    values = ["null", '"train"', '"eval"'] if version == "v3" else ["true", "false"]
    for value in values:
        block = f'[a]\n@loggers = "spacy.ConsoleLogger.{version}"\nprogress_bar = {value}\n'
        if version != "v1":
            block += "console_output = true\noutput_file = null\n"
        for text in (block, block.replace("spacy.", "spacy-elmo.").replace(version, "v1")):
            config = Config().from_str(text)
            assert callable(registry.resolve(config)["a"]), text
            assert registry.fill(config)["a"]["progress_bar"] == config["a"]["progress_bar"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8"])
def test_no_name_ends_a_training(weights: Path, tmp_path: Path, encoding: str) -> None:
    """Whatever the encoding of the standard output."""
    nlp = make_pipeline(weights, OWN_MIX)
    nlp.rename_pipe("tagger", "태거")
    nlp.config["training"]["score_weights"] = {"tag_acc": 1.0}
    examples = make_examples(nlp)
    DocBin(docs=[example.reference for example in examples]).to_disk(tmp_path / "docs.spacy")
    nlp.config.to_disk(tmp_path / "config.cfg")
    data = [f"--paths.{split}={tmp_path / 'docs.spacy'}" for split in ("train", "dev")]
    logger = '--training.logger={"@loggers":"spacy-elmo.ConsoleLogger.v1"}'
    steps = ["--training.max_steps=2", "--training.eval_frequency=1"]
    command = [
        sys.executable,
        "-m",
        "spacy",
        "train",
        tmp_path / "config.cfg",
        *data,
        *steps,
        logger,
    ]
    done = subprocess.run(
        [*map(str, command), logger], capture_output=True, timeout=300,
        env={**os.environ, "PYTHONIOENCODING": encoding}
    )  # fmt: skip
    printed = done.stdout.decode(encoding)
    assert done.returncode == 0, printed + done.stderr.decode("utf-8", "replace")
    name, gamma = ("태거", "γ") if encoding == "utf-8" else (r"\ud0dc\uac70", r"\u03b3")
    assert printed.count(f"{name} tok2vec: s") == 3 and printed.count(f", {gamma} 1.0") == 3


def test_the_output_is_as_strict_as_before_after_a_training(weights: Path) -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", errors="strict")
    nlp = make_pipeline(weights, OWN_MIX)
    nlp.initialize(lambda: make_examples(nlp))
    _, finalize = ConsoleLogger()(nlp, stdout, stdout)
    assert stdout.errors == "backslashreplace"
    finalize()
    assert stdout.errors == "strict"


def test_the_logger_shows_progress_as_spacys_does(weights: Path, monkeypatch) -> None:
    """True is what spaCy's v1 does with it: a bar until the next evaluation."""
    monkeypatch.setattr(Terminal, "isatty", lambda self: True)
    nlp = make_pipeline(weights, OWN_MIX)
    bar = train_logged(nlp, ConsoleLogger(progress_bar=True))
    assert re.search(r"\rEpoch 1: .* 0/200 \[", bar)
    assert bar.count("\r             tagger tok2vec: s ") == 3  # not at the end of the bar
    assert "Epoch " not in train_logged(nlp, ConsoleLogger(progress_bar=False))


def test_the_logger_prints_nothing_if_it_is_told_so(weights: Path) -> None:
    assert train_logged(make_pipeline(weights, OWN_MIX), ConsoleLogger(console_output=False)) == ""
