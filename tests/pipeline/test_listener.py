"""``spacy-elmo.ElmoListener.v1`` and ``spacy-elmo.Tok2Vec.v1``: a mix for each listener."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam

from spacy_elmo import mixes

from .helpers import CONFIG, TOLERANCE, make_nlp, max_difference, write_weights
from .learning import (
    EMBED,
    ENCODE,
    LISTENER,
    TEXT,
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
    two,
)

TOK2VEC = "spacy-elmo.Tok2Vec.v1"
STATIC: dict[str, Any] = {
    "@layers": "spacy.StaticVectors.v2", "nO": 8, "nM": None, "dropout": None, "key_attr": "ORTH",
    "init_W": {"@initializers": "glorot_uniform_init.v1"}
}  # fmt: skip


def tags(doc: Doc) -> list[str]:
    return [token.tag_ for token in doc]


# Learning


def test_each_listener_has_a_mix_of_its_own(weights: Path) -> None:
    """Two in one model and one in another, from one pass of the biLM."""
    nlp = make_pipeline(weights, two(listening(), listening(initial_weights=[0.0, 1.0, 2.0])))
    nlp.add_pipe("tagger", name="other", config=tagger_config(listening()))
    examples, optimizer = start(nlp)
    passes = []
    bilm = nlp.get_pipe("elmo").bilm
    forward = bilm.forward
    bilm.forward = lambda parts: passes.append(1) or forward(parts)
    for _ in range(10):
        step(nlp, examples, optimizer)
    assert len(passes) == 10
    assert len({mix.weights for mix in mixes(nlp) if mix.component != "elmo"}) == 3


@pytest.mark.parametrize("tok2vec", [listening(), LISTENER])
def test_gradients_of_listeners_add_up(weights: Path, tok2vec: dict[str, Any]) -> None:
    """Whatever their order, and also when one of them learns nothing from a batch."""

    def gradients(names: list[str], silent: str | None = None) -> dict[str, np.ndarray]:
        nlp = make_nlp(weights, frozen=False)
        for name in names:
            nlp.add_pipe("tagger", name=name, config=tagger_config(tok2vec))
        examples, _ = start(nlp)
        if silent is not None:
            nlp.get_pipe(silent).update = lambda examples, **settings: settings["losses"]
        return {name: g for (_, name), g in gradients_of(nlp, examples).items() if "." in name}

    one, both = gradients(["a"]), gradients(["a", "b"])
    assert len(one) == len(numbers(make_nlp(weights, frozen=False).get_pipe("elmo").model))
    for silent in (None, "a", "b"):
        found = both if silent is None else gradients(["a", "b"], silent)
        for name, gradient in one.items():
            expected = 2 * gradient if silent is None else gradient
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found[name], expected, atol=1e-4 * scale, err_msg=name)


def test_a_mix_that_is_not_trainable(weights: Path) -> None:
    nlp, examples, optimizer = started(
        weights, listening(trainable=False, mix_l2=1.0, initial_weights=[1, 2, 3])
    )
    for _ in range(3):
        losses = step(nlp, examples, optimizer)
    mix = mix_of(nlp.get_pipe("tagger").model)
    assert mix.get_param("w").tolist() == [1, 2, 3] and mix.get_param("gamma").tolist() == [1]
    assert losses["tagger"] > 0


def test_dropout_is_its_own(weights: Path) -> None:
    """At any rate that the training has, and never in prediction."""
    nlp, examples, _ = started(weights, listening(dropout=0.5))
    docs = [example.predicted for example in examples]
    elmo, tok2vec = nlp.get_pipe("elmo"), nlp.get_pipe("tagger").model.get_ref("tok2vec")
    elmo.update(examples, drop=0.0, losses={})
    Y = np.concatenate(tok2vec.begin_update(docs)[0])
    assert 0.4 < (Y == 0).mean() < 0.6
    predicted = np.concatenate([tok2vec.predict([nlp(TEXT)])[0]])
    assert (predicted != 0).all()


def test_averages_reach_the_mix(weights: Path) -> None:
    nlp, examples, _ = started(weights, listening())
    optimizer = Adam(0.05, use_averages=True)
    for _ in range(4):
        step(nlp, examples, optimizer)
    mix = mix_of(nlp.get_pipe("tagger").model)
    last = mix.get_param("w").copy()
    with nlp.use_params(optimizer.averages):
        assert np.abs(mix.get_param("w") - last).max() > 1e-4
    np.testing.assert_array_equal(mix.get_param("w"), last)


# Without a component that learns with it


def move_to_the_end(nlp: Language) -> None:
    name, component = nlp._components.pop(0)
    nlp._components.append((name, component))
    nlp._link_components()


@pytest.mark.parametrize("change", [lambda nlp: nlp.disable_pipe("elmo"), move_to_the_end])
def test_without_its_component(weights: Path, change: Any) -> None:
    nlp, *_ = started(weights, listening(), steps=1)
    change(nlp)
    said = r"'tagger' listens to 'elmo', which has not read the Doc.* Put an enabled elmo component"
    with pytest.raises(ValueError, match=said):
        nlp("some words")
    with pytest.raises(ValueError, match=said):  # as of one that is frozen and does not annotate
        nlp.get_pipe("tagger").update(make_examples(nlp))


@pytest.mark.parametrize("upstream", ["sentencizer", "elmo"])
def test_its_component_is_missing_or_of_another_kind(weights: Path, upstream: str) -> None:
    nlp = spacy.blank("en") if upstream == "elmo" else make_nlp(weights)
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("tagger", config=tagger_config(listening(upstream=upstream)))
    said = rf"listens to '{upstream}', but no elmo component .*Add one, or set 'upstream'"
    with pytest.raises(ValueError, match=said):
        start(nlp)


def test_the_weights_of_its_component_are_missing(tmp_path: Path) -> None:
    nlp = make_pipeline(tmp_path / "nowhere", listening())
    with nlp.select_pipes(disable="elmo"):  # as `spacy train` does with a frozen component
        with pytest.raises(ValueError, match=r"'weights' in \[components\.elmo\.model\]"):
            start(nlp)


def damage(place: Path) -> None:
    for name in ("config.json", "config.cfg"):
        (place / name).write_text("damaged")


def write_larger(place: Path) -> None:
    write_weights(place, config=dataclasses.replace(CONFIG, projection_dim=12, n_layers=3))


@pytest.mark.parametrize("write", [damage, write_larger])
def test_other_files_have_come_to_lie_where_the_weights_were(
    own_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    """What was saved is what counts, also for the shape of the listeners."""
    monkeypatch.chdir(own_weights)
    nlp, *_ = started(".", listening(), steps=1)
    expected, data = nlp(TEXT), nlp.to_bytes()
    nlp.to_disk(tmp_path / "nlp")
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(own_weights)
    own_weights.mkdir()
    write(own_weights)
    monkeypatch.chdir(own_weights)
    from_bytes = spacy.blank("en").from_config(nlp.config).from_bytes(data)
    for loaded in (spacy.load(tmp_path / "nlp"), from_bytes):
        assert max_difference(loaded(TEXT).tensor, expected.tensor) <= TOLERANCE
        assert tags(loaded(TEXT)) == tags(expected)
        step(loaded, *start(loaded))


@pytest.mark.parametrize("frozen", [True, False])
def test_a_batch_that_is_over(weights: Path, frozen: bool) -> None:
    """A biLM that learns would lose its gradient, silently; a frozen one has none."""
    nlp, examples, optimizer = started(weights, listening(), frozen=frozen)
    elmo, tagger = nlp.get_pipe("elmo"), nlp.get_pipe("tagger")
    elmo.update(examples)
    tagger.update(examples, losses={})
    elmo.finish_update(optimizer)
    tagger.finish_update(optimizer)
    mix = mix_of(nlp.get_pipe("tagger").model)
    if frozen:
        tagger.update(examples, losses={})
        assert mix.get_grad("w").any()
    else:
        said = r"'tagger' learns from a batch of 'elmo' that is over.*Update 'elmo' with these Docs"
        with pytest.raises(ValueError, match=said):
            tagger.update(examples, losses={})
        assert not mix.get_grad("w").any()
        for example in examples:  # then the component only annotates them
            elmo(example.predicted)
        tagger.update(examples, losses={})
        assert mix.get_grad("w").any()


@pytest.mark.parametrize("tok2vec", [listening(), LISTENER], ids=["own", "shared"])
def test_gradients_that_come_after_the_end_of_their_batch(
    weights: Path, tok2vec: dict[str, Any]
) -> None:
    nlp, examples, _ = started(weights, tok2vec, frozen=False)
    elmo, tagger = nlp.get_pipe("elmo"), nlp.get_pipe("tagger")
    elmo.update(examples)
    docs = [example.predicted for example in examples]
    Y, backprop = tagger.model.get_ref("tok2vec").begin_update(docs)
    elmo.update(make_examples(nlp, 3))
    with pytest.raises(ValueError, match="A listener learns from a batch of 'elmo' that is over"):
        backprop(Y)


def test_rehearsed(weights: Path) -> None:
    """``nlp.rehearse`` runs no elmo component, but a Doc may have been read before."""
    nlp, examples, optimizer = started(weights, listening(), steps=1)
    nlp.resume_training()
    examples = make_examples(nlp)
    with pytest.raises(ValueError, match=r"before nlp\.rehearse, run it on the Docs"):
        nlp.rehearse(examples, sgd=optimizer)
    for example in examples:
        nlp.get_pipe("elmo")(example.predicted)
    assert nlp.rehearse(examples, sgd=optimizer)["tagger"] >= 0


def test_the_penalty_counts_once_for_a_step(weights: Path) -> None:
    """However many batches it has; without gold there is nothing else in the gradient."""
    w = [0.5, -1.0, 0.25]
    found = []
    for n in (1, 4):
        nlp, examples, _ = started(weights, listening(mix_l2=0.1, initial_weights=w))
        for example in examples:
            for token in example.reference:
                token.tag = 0  # unknown
        for batch in range(n):
            nlp.update(examples[batch * 8 // n : (batch + 1) * 8 // n], sgd=False)
        found.append(mix_of(nlp.get_pipe("tagger").model).get_grad("w"))
    for gradient in found:
        np.testing.assert_allclose(gradient, 0.2 * np.array(w), atol=1e-6)


@Language.component("merge_and_split")
def merge_and_split(doc: Doc) -> Doc:
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.split(doc[4], ["i", "ts"], heads=[(doc[4], 1), doc[5]])
    return doc


def test_retokenized_to_as_many_tokens_in_training(weights: Path) -> None:
    nlp, _, optimizer = started(weights, listening())
    nlp.add_pipe("merge_and_split", before="tagger")
    words = TEXT.split()[:2] + ["a", "b", "its", "c"]
    [example] = [Example(Doc(nlp.vocab, words), Doc(nlp.vocab, words, tags=["A"] * len(words)))]
    with pytest.raises(ValueError, match="merged or split"):
        nlp.update([example], sgd=optimizer, annotates=["merge_and_split"])


# The task models


def test_neither_elmo_nor_embedding(weights: Path) -> None:
    with pytest.raises(ValueError, match="neither 'elmo' nor 'embed'"):
        make_pipeline(weights, {"@architectures": TOK2VEC})


@pytest.mark.parametrize("embed", [STATIC, {**EMBED, "include_static_vectors": True}])
def test_static_vectors_without_vectors(weights: Path, embed: dict[str, Any]) -> None:
    tok2vec = {"@architectures": TOK2VEC, "elmo": listening(), "embed": embed}
    nlp = make_pipeline(weights, tok2vec)
    with pytest.raises(ValueError, match=r"initialize\.vectors.*--paths\.vectors"):
        start(nlp)


@pytest.mark.parametrize("missing", ["elmo", "embed", "output_elmo"])
def test_a_biLM_of_its_own(weights: Path, missing: str) -> None:
    """`Elmo.v1` in the place of a listener, without an elmo component."""
    elmo = {"@architectures": "spacy-elmo.Elmo.v1", "weights": str(weights)}
    parts = {"elmo": elmo, "embed": EMBED, "encode": ENCODE, "output_elmo": elmo, missing: None}
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger", config=tagger_config(parts | {"@architectures": TOK2VEC}))
    examples, optimizer = start(nlp, learn_rate=0.01)
    losses = [step(nlp, examples, optimizer)["tagger"] for _ in range(9)]
    assert losses[-1] < losses[0]
