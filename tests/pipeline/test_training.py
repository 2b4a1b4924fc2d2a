import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from thinc.api import Adam

from .helpers import CONFIG as BILM
from .helpers import N_LAYERS, WIDTH, make_nlp, write_int8, write_weights
from .learning import (
    LISTENER,
    TEXT,
    WORDS,
    changed,
    gradients_of,
    listening,
    make_examples,
    make_pipeline,
    mix_of,
    numbers,
    start,
    started,
    step,
    tagger_config,
)


def test_learns_whatever_pytorch_is_set_to(weights):
    """In a notebook where gradients are off, after a Doc was read in inference mode, and with
    another default type."""
    before = torch.get_default_dtype()
    nlp = make_pipeline(weights, frozen=False)
    elmo = nlp.get_pipe("elmo")
    with torch.inference_mode():
        elmo(nlp.make_doc(TEXT))
    examples, optimizer = start(nlp)
    start_values = numbers(elmo.model)
    with torch.set_grad_enabled(False):
        step(nlp, examples, optimizer)
    assert changed(elmo.model, start_values) == {*start_values}
    torch.set_default_dtype(torch.float64)
    try:
        assert elmo(nlp.make_doc("The bank  was")).tensor.dtype == "float32"
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("again", [lambda nlp: nlp, deepcopy], ids=["itself", "copy"])
def test_initialized_again_nothing_learned_is_left(weights, frozen, again):
    """As of spaCy's own components: folds of a cross-validation know nothing of each other."""
    nlp = make_pipeline(weights, listening(gamma=2.0), frozen=frozen)
    found = []
    for _ in range(2):
        examples, optimizer = start(nlp)
        elmo, tagger = nlp.get_pipe("elmo").model, nlp.get_pipe("tagger").model
        found.append({**numbers(elmo), "tagger": mix_of(tagger).get_param("w").copy()})
        assert mix_of(tagger).get_param("gamma")[0] == 2.0
        for _ in range(3):
            step(nlp, examples, optimizer)
        assert mix_of(tagger).get_param("w").any()
        nlp = again(nlp)
    assert found[0].keys() == found[1].keys()
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


def test_initialized_again_for_another_bilm(weights, tmp_path):
    nlp, examples, optimizer = started(weights, listening(), steps=1)
    one = write_weights(tmp_path / "one", config=replace(BILM, n_layers=1))
    nlp.replace_pipe("elmo", "elmo", config={"model": {"weights": str(one)}})
    examples, optimizer = start(nlp)
    step(nlp, examples, optimizer)
    assert len(mix_of(nlp.get_pipe("tagger").model).get_param("w")) == 2
    assert nlp(TEXT)[0].tag_


def test_initialized_before_there_are_sentences(weights):
    """Those of `annotating_components`, which the sample of `initialize` has not met."""
    nlp = make_pipeline(weights, segments="sents")
    nlp.add_pipe("sentencizer", first=True)
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    assert not examples[0].predicted.has_annotation("SENT_START")
    nlp.update(examples, sgd=optimizer, annotates=["sentencizer"], losses=(losses := {}))
    assert losses["tagger"] > 0


@pytest.mark.parametrize("frozen", [True, False])
def test_accumulated_gradients(weights, frozen):
    """Two batches before a step are as good as one of twice the size."""
    found = []
    for batches in (1, 2):
        nlp, examples, _ = started(weights, frozen=frozen)
        # The tagger averages its loss over a batch's words, so both batches must be alike.
        gradients = gradients_of(nlp, examples[:4] * 2, batches)
        found.append({name: gradient for (_, name), gradient in gradients.items()})
    assert found[0].keys() == found[1].keys() >= {"w", "gamma"}
    assert ("_model.lstm.0.bias" in found[0]) == (not frozen)
    ratio = np.abs(found[1]["b"]).sum() / np.abs(found[0]["b"]).sum()
    for name, gradient in found[0].items():
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(found[1][name], ratio * gradient, atol=1e-3 * scale)


def test_empty_docs_in_a_batch(weights):
    nlp, examples, optimizer = started(weights, frozen=False)
    empty = Example(Doc(nlp.vocab), Doc(nlp.vocab))
    space = Example(Doc(nlp.vocab, words=[" "]), Doc(nlp.vocab, words=[" "], tags=["P"]))
    losses = step(nlp, [empty, *examples, space], optimizer)
    assert losses["tagger"] > 0
    step(nlp, [empty, empty], optimizer)


def test_a_listener_of_another_width_to_one_that_is_not_initialized(weights):
    nlp = make_nlp(weights)
    nlp.add_pipe("tagger", config=tagger_config({**LISTENER, "width": 20}))
    examples = make_examples(nlp)
    with nlp.select_pipes(disable="elmo"):
        nlp.initialize(lambda: examples)
    with pytest.raises(ValueError, match=rf"'tagger'.* width = 20.* {WIDTH} dim"):
        nlp.update(examples, exclude=["elmo"], annotates=["elmo"])


@pytest.mark.parametrize("frozen", [True, False])
def test_spacy_train(own_weights, tmp_path, frozen):
    nlp = make_pipeline(own_weights, frozen=frozen)
    data = tmp_path / "data.spacy"
    DocBin(docs=[example.reference for example in make_examples(nlp, 20)]).to_disk(data)
    nlp.config.to_disk(tmp_path / "config.cfg")
    settings = {"max_steps": 6, "eval_frequency": 3, "accumulate_gradient": 2}
    overrides = {f"training.{name}": value for name, value in settings.items()}
    overrides |= {"paths.train": str(data), "paths.dev": str(data)}
    train(tmp_path / "config.cfg", tmp_path / "out", overrides=overrides)
    before = numbers(make_nlp(own_weights).get_pipe("elmo").model)
    shutil.rmtree(own_weights)
    loaded = spacy.load(tmp_path / "out" / "model-last")
    model = loaded.get_pipe("elmo").model
    assert len(set(mix_of(model).get_param("w").tolist())) == N_LAYERS
    assert changed(model, before) == (set() if frozen else {*before})
    assert {token.tag_ for token in loaded("the bank sat.")} <= set(WORDS.values())
    assert (tmp_path / "out" / "model-best" / "elmo" / "LICENSE").is_file()


def test_the_factor_acts_on_what_is_changed(weights: Path) -> None:
    """Adam's steps are as large whatever the gradients are scaled by."""
    moved = []
    for factor in (1.0, 0.01):
        nlp, examples, _ = started(weights, listening(), frozen=False, learn_rate_factor=factor)
        elmo, optimizer = nlp.get_pipe("elmo").model, Adam(0.01, grad_clip=0.0)
        before = numbers(elmo)
        step(nlp, examples, optimizer)
        assert optimizer.learn_rate == pytest.approx(0.01)  # that of the tagger
        after = numbers(elmo)
        moved.append({name: float(np.abs(after[name] - before[name]).max()) for name in before})
    assert max(moved[0].values()) > 5e-3
    for name, size in moved[0].items():
        assert moved[1][name] == pytest.approx(0.01 * size, rel=0.1, abs=2e-7)


def test_twice_initialized_without_those_that_listen(weights: Path) -> None:
    """What a component has learned from stays, whatever pipeline spaCy has linked last."""
    nlp, examples, _ = started(weights, frozen=False)
    for _ in range(3):
        step(nlp, examples, Adam(0.01))
    expected = numbers(nlp.get_pipe("elmo").model)
    for _ in range(2):
        with nlp.select_pipes(enable=["elmo"]):
            nlp.initialize()
    other = spacy.blank("en")
    other.add_pipe("elmo", source=nlp)
    with nlp.select_pipes(enable=["elmo"]):
        nlp.initialize()
    assert not changed(nlp.get_pipe("elmo").model, expected)


def test_int8_ends_with_a_step_of_training_which_says_so_once(tmp_path: Path) -> None:
    """Not in a copy."""
    weights = write_int8(tmp_path / "int8")
    nlp = make_pipeline(weights, frozen=False)
    examples, optimizer = start(nlp)
    copies, expected = [deepcopy(nlp), deepcopy(make_nlp(weights))], nlp(TEXT).tensor
    with pytest.warns(UserWarning, match="no longer rounded to int8") as said:
        step(nlp, examples, optimizer, batches=3)
    assert len([each for each in said if "int8" in str(each.message)]) == 1
    assert not nlp.get_pipe("elmo").bilm.model.config.int8
    for copied in copies:
        np.testing.assert_array_equal(copied(TEXT).tensor, expected)
        assert copied.get_pipe("elmo").bilm.model.config.int8
    nlp.to_disk(tmp_path / "saved")
    np.testing.assert_array_equal(spacy.load(tmp_path / "saved")(TEXT).tensor, nlp(TEXT).tensor)
