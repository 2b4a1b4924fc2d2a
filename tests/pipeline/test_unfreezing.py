"""How fast, and which parts of, a biLM learns with a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spacy.language import Language
from spacy.util import registry
from thinc.api import SGD, Adam

from spacy_elmo.architectures import gradual_unfreezing

from .helpers import make_nlp
from .learning import make_inline, make_pipeline, numbers, start, started, step

OWN_MIX = {"@architectures": "spacy-elmo.ElmoListener.v1", "dropout": 0.0, "mix_l2": 0.0}


def elmo_numbers(nlp: Language) -> dict[str, np.ndarray]:
    return numbers(nlp.get_pipe("elmo").model)


def changed(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> dict[str, float]:
    sizes = {name: float(np.abs(after[name] - before[name]).max()) for name in before}
    return {name: size for name, size in sizes.items() if size > 0}


# The learning rate


@pytest.mark.parametrize("kind", [Adam, SGD])
def test_the_factor_acts_on_what_is_changed(weights: Path, kind: Any) -> None:
    changes = []
    for factor in (1.0, 0.01):
        nlp, examples, _ = started(weights, OWN_MIX, frozen=False, learn_rate_factor=factor)
        optimizer = kind(0.01, grad_clip=0.0)
        before, tagger = elmo_numbers(nlp), nlp.get_pipe("tagger").model.get_ref("softmax")
        W = tagger.get_param("W").copy()
        step(nlp, examples, optimizer)
        assert optimizer.learn_rate == pytest.approx(0.01)
        changes.append((changed(before, elmo_numbers(nlp)), tagger.get_param("W") - W))
    (full, task), (slow, task_too) = changes
    assert np.allclose(task, task_too)
    assert set(full) == set(slow)
    for name, size in full.items():
        assert slow[name] == pytest.approx(0.01 * size, rel=0.1, abs=2e-7)


def test_a_factor_out_of_range(weights: Path) -> None:
    with pytest.raises(ValueError, match="learn_rate_factor is 0; it must be greater than 0"):
        make_nlp(weights, frozen=False, learn_rate_factor=0)


# Gradual unfreezing


def test_the_top_layer_first(weights: Path) -> None:
    nlp, examples, optimizer = started(weights, OWN_MIX, frozen=False)
    unfreeze = gradual_unfreezing(every=2, unit="step")
    names = set(elmo_numbers(nlp))
    top = {name for name in names if name.startswith("lstm.1.")}
    lower = {name for name in names if name.startswith("lstm.0.")}
    assert top and lower and names - top - lower
    learning = []
    for number in range(9):
        before = elmo_numbers(nlp)
        unfreeze(nlp, {"step": number, "epoch": 0})
        step(nlp, examples, optimizer)
        learning.append(set(changed(before, elmo_numbers(nlp))))
    assert learning == [set()] * 2 + [top] * 2 + [top | lower] * 2 + [names] * 3


def test_the_next_training_holds_nothing_back(weights: Path) -> None:
    nlp, examples, optimizer = started(weights, OWN_MIX, frozen=False)
    gradual_unfreezing()(nlp, {"step": 0, "epoch": 0})
    step(nlp, examples, optimizer)
    examples, optimizer = start(nlp)
    before = elmo_numbers(nlp)
    step(nlp, examples, optimizer)
    assert set(changed(before, elmo_numbers(nlp))) == set(before)


@pytest.mark.parametrize("is_saved", [False, True])
def test_the_next_training_holds_still_what_it_is_told_to(weights: Path, is_saved: bool) -> None:
    """Also by an optimizer that shrinks whatever has a gradient, be it one of zeros; and also a
    biLM that came with a saved component, which is not loaded again."""
    nlp, examples, optimizer = started(weights, OWN_MIX, frozen=False)
    elmo = nlp.get_pipe("elmo")
    if is_saved:
        elmo.from_bytes(elmo.to_bytes())
    step(nlp, examples, optimizer)
    examples, _ = start(nlp)
    gradual_unfreezing(first=1)(nlp, {"step": 0, "epoch": 0})
    before = elmo_numbers(nlp)
    for other in (Adam(0.05, L2=0.1, L2_is_weight_decay=True), optimizer):
        step(nlp, examples, other)
    assert set(changed(before, elmo_numbers(nlp))) == {n for n in before if n.startswith("lstm.1.")}


@pytest.mark.parametrize("unit", ["epoch", "step"])
def test_units_inline_and_before_the_weights_are_loaded(weights: Path, unit: str) -> None:
    nlp = make_inline(weights, frozen=False)
    callback = gradual_unfreezing("tagger", every=1, unit=unit, first=1)
    callback(nlp, {"step": 0, "epoch": 0})
    examples, optimizer = start(nlp)
    model = nlp.get_pipe("tagger").model
    before = numbers(model)
    step(nlp, examples, optimizer)
    assert all(name.startswith("lstm.1.") for name in changed(before, numbers(model)))
    progress = {"step": 0, "epoch": 0, unit: 5}
    callback(nlp, progress)
    before = numbers(model)
    step(nlp, examples, optimizer)
    assert set(changed(before, numbers(model))) == set(before)


@pytest.mark.parametrize("component", ["elmo", "tagger", "bert"])
def test_what_it_cannot_unfreeze(weights: Path, component: str) -> None:
    nlp = make_pipeline(weights, OWN_MIX)
    learning = make_pipeline(weights, OWN_MIX, frozen=False)
    learning.config["training"]["frozen_components"] = ["elmo"]
    for each in (nlp, learning):
        with pytest.raises(ValueError, match=f"'{component}' has no biLM that is trained"):
            gradual_unfreezing(component)(each, {"step": 0, "epoch": 0})


@pytest.mark.parametrize("setting", [{"unit": "hour"}, {"every": 0}, {"first": -1}])
def test_settings_of_unfreezing_out_of_range(setting: dict[str, Any]) -> None:
    block = {"@callbacks": "spacy-elmo.gradual_unfreezing.v1", **setting}
    with pytest.raises(ValueError, match=next(iter(setting))):
        registry.resolve({"before_update": block})


@pytest.mark.parametrize("loaded", [False, True])
def test_a_copy_trains_the_same_parts(weights: Path, loaded: bool) -> None:
    layer = make_inline(weights, frozen=False).get_pipe("tagger").model.get_ref("tok2vec").layers[0]
    bilm = layer.shims[0].bilm
    if loaded:
        bilm.model  # noqa: B018
    for n_parts in (0, 1):
        bilm.unfreeze_top(n_parts)
        copied = layer.copy().shims[0].bilm
        assert copied.is_trainable == bilm.is_trainable == bool(n_parts)
        trained = {name for name, p in copied.model.named_parameters() if p.requires_grad}
        assert all(name.startswith("lstm.1.") for name in trained)
        assert bool(trained) == bool(n_parts)
