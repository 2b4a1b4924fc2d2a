"""spaCy's listener, ours, and a biLM inside the task's model: trained, saved, sourced, replaced."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from thinc.api import SGD, Adam

from .helpers import N_LAYERS, TOLERANCE, max_difference
from .learning import (
    LISTENER,
    TEXT,
    bilm_of,
    changed,
    gradients_of,
    listening,
    make_examples,
    make_inline,
    make_pipeline,
    mix_of,
    numbers,
    start,
    step,
)

LISTENERS = {"spaCy's": LISTENER, "ours": listening(gamma=1.5)}
KINDS = [*LISTENERS, "inline"]
FROZEN = pytest.mark.parametrize("frozen", [True, False])


def make(weights: Path, kind: str, frozen: bool) -> Language:
    """Each has a mix with γ = 1.5."""
    if kind == "inline":
        mix = {"@architectures": "spacy-elmo.ScalarMix.v1", "gamma": 1.5}
        return make_inline(weights, frozen=frozen, mix=mix)
    return make_pipeline(weights, LISTENERS[kind], frozen=frozen, gamma=1.5)


def scores(nlp: Language) -> list[np.ndarray]:
    return nlp.get_pipe("tagger").model.predict([nlp(TEXT), nlp("a river")])


@FROZEN
def test_trained(weights: Path, frozen: bool) -> None:
    """By the same gradients in each way, and from then on until it has learned."""
    found = []
    for kind in KINDS:
        nlp = make(weights, kind, frozen)
        examples, optimizer = start(nlp)
        found.append({name: g for (_, name), g in gradients_of(nlp, examples).items()})
        with_bilm = nlp.get_pipe("tagger" if kind == "inline" else "elmo").model
        mix = mix_of(nlp.get_pipe("elmo" if kind == "spaCy's" else "tagger").model)
        before = numbers(with_bilm)
        losses = [step(nlp, examples, optimizer)["tagger"] for _ in range(40)]
        assert losses[-1] < 0.5 * losses[0]
        assert len(set(mix.get_param("w").tolist())) == N_LAYERS
        assert mix.get_param("gamma") != 1.5
        moved = changed(with_bilm, before)
        assert moved == (set() if frozen else set(before))
        held = {name.removeprefix("_model.") for _, name in optimizer.mom1 if "." in name}
        assert held == moved  # an optimizer has no state of what is frozen
    for gradients in found[1:]:
        assert gradients.keys() == found[0].keys() >= {"w", "gamma"}
        for name, expected in found[0].items():
            scale = np.abs(expected).max()
            assert np.abs(gradients[name] - expected).max() <= 1e-4 * scale, name


def saved(nlp: Language, path: Path) -> Language:
    nlp.to_disk(path / "nlp")
    return spacy.load(path / "nlp")


def pickled_midway(nlp: Language, path: Path) -> Language:
    nlp.update(make_examples(nlp), sgd=False)  # leaves gradients for the next step
    return pickle.loads(pickle.dumps(nlp))


def sourced(nlp: Language, path: Path) -> Language:
    other = spacy.blank("en")
    for name in nlp.pipe_names:
        other.add_pipe(name, source=nlp)
    return other


def sourced_in_another_order(nlp: Language, path: Path) -> Language:
    other = spacy.blank("en")
    for name in reversed(nlp.pipe_names):
        other.add_pipe(name, source=nlp, first=True)
    return saved(other, path)


def replaced(nlp: Language, path: Path) -> Language:
    if "elmo" in nlp.pipe_names:
        elmo = nlp.get_pipe("elmo")
        nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
        assert elmo.listeners == []
        one, other = (
            next(bilm_of(nlp.get_pipe(name).model).parameters()) for name in ("elmo", "tagger")
        )
        assert (one.data_ptr() == other.data_ptr()) == elmo.bilm.settings.frozen
        block = nlp.config["components"]["tagger"]["model"]["tok2vec"]
        assert block["frozen"] == elmo.bilm.settings.frozen
        nlp.remove_pipe("elmo")
    return saved(nlp, path)


@pytest.mark.parametrize("kind", KINDS)
@FROZEN
@pytest.mark.parametrize(
    "way", [saved, pickled_midway, sourced, sourced_in_another_order, replaced]
)
def test_the_same_afterwards(
    weights: Path, tmp_path: Path, kind: str, frozen: bool, way: Callable[..., Language]
) -> None:
    """And it learns on."""
    nlp = make(weights, kind, frozen)
    examples, optimizer = start(nlp)
    for _ in range(3):
        step(nlp, examples, optimizer)
    expected = scores(nlp)
    other = way(nlp, tmp_path)
    for each in (other, nlp, other):
        assert max_difference(scores(each), expected) <= TOLERANCE
    step(other, make_examples(other), Adam(0.02))
    learned = scores(other)
    assert max_difference(learned, expected) > TOLERANCE
    if way is sourced:  # both pipelines have the components that have learned
        assert max_difference(scores(nlp), learned) <= TOLERANCE
        step(nlp, make_examples(nlp), Adam(0.02))


@pytest.mark.parametrize("kind", LISTENERS)
@FROZEN
def test_annotating_between_two_trainings(weights: Path, kind: str, frozen: bool) -> None:
    """Listeners learn from a component that only annotates. What the biLM has computed by then is
    not used once it has learned."""
    nlp = make(weights, kind, frozen)
    examples, optimizer = start(nlp)
    step(nlp, examples, optimizer)
    elmo, tagger = nlp.get_pipe("elmo").model, nlp.get_pipe("tagger").model
    before, mix = numbers(elmo), mix_of(elmo).get_param("w").copy()
    W = tagger.get_ref("softmax").get_param("W").copy()
    for n in (3, 8, 8):  # what is read the second time is held
        nlp.update(make_examples(nlp, n), sgd=optimizer, exclude=["elmo"], annotates=["elmo"])
    assert (tagger.get_ref("softmax").get_param("W") != W).any()
    assert not changed(elmo, before)
    np.testing.assert_array_equal(mix_of(elmo).get_param("w"), mix)
    step(nlp, examples, SGD(0.5, grad_clip=0.0))  # Adam's momentum would move what has no gradient
    assert changed(elmo, before) == (set() if frozen else set(before))
    fresh = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    vectors = ([each(e.text).tensor for e in examples] for each in (nlp, fresh))
    assert max_difference(*vectors) <= TOLERANCE
