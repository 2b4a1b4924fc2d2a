"""``spacy-elmo.ElmoListener.v1`` and ``spacy-elmo.Tok2Vec.v1``: a mix for each listener."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam, Model

import spacy_elmo

from .helpers import (
    CONFIG,
    N_LAYERS,
    TOLERANCE,
    WIDTH,
    finite_difference,
    make_nlp,
    max_difference,
    write_weights,
)
from .learning import (
    LISTENER,
    TEXT,
    bilm_of,
    listeners_of,
    listening,
    make_examples,
    make_inline,
    make_pipeline,
    numbers,
    start,
    started,
    step,
    tagger_config,
)


def mixes_of(nlp: Language, name: str) -> list[Model]:
    return [n for n in nlp.get_pipe(name).model.walk() if n.name == "elmo-scalar-mix"]


def tags(doc: Doc) -> list[str]:
    return [token.tag_ for token in doc]


def gradients_of(nlp: Language, examples: list[Example]) -> dict[tuple[int, str], np.ndarray]:
    """What one step would change, by the id of the layer and the parameter's name."""
    noted: dict[tuple[int, str], np.ndarray] = {}

    def note(key: tuple[int, str], value: Any, gradient: Any) -> tuple[Any, Any]:
        noted[key] = np.array(gradient, copy=True)
        return value, gradient

    step(nlp, examples, note)
    return noted


# Its shape


def test_the_width_is_set_by_the_component(weights: Path) -> None:
    nlp = make_pipeline(weights, listening())
    [listener] = listeners_of(nlp, "tagger")
    assert listener.get_dim("nO") == WIDTH
    assert listener.depth == N_LAYERS
    assert not nlp.get_pipe("elmo").bilm.is_loaded  # its config file alone was read
    assert nlp.get_pipe("elmo").listening_components == ["tagger"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"mix_l2": -0.1}, "l2 is -0.1"),
        ({"initial_weights": [0.0]}, r"initial_weights has 1 .* 3 layers"),
        ({"layers": 3}, r"layers is 3; .* from 0 .* to 2"),
    ],
)
def test_settings(settings: dict[str, Any], said: str, weights: Path) -> None:
    with pytest.raises(ValueError, match=said):
        start(make_pipeline(weights, listening(**settings)))


# Learning


def test_several_processes(weights: Path) -> None:
    nlp, *_ = started(weights, listening(dropout=0.2, mix_l2=0.001), steps=30)
    texts = [TEXT, "a river", "plays"]
    docs = nlp.pipe(texts, n_process=2, batch_size=1)
    assert [tags(doc) for doc in docs] == [tags(nlp(text)) for text in texts]


@pytest.mark.parametrize("frozen", [True, False])
def test_the_same_is_learned_by_each_way(weights: Path, frozen: bool) -> None:
    """With a mix of its own, with the component's mix, and with a biLM of its own."""
    found = []
    for name, nlp in (
        ("tagger", make_pipeline(weights, listening(), frozen=frozen)),
        ("elmo", make_pipeline(weights, LISTENER, frozen=frozen)),
        ("tagger", make_inline(weights, frozen=frozen)),
    ):
        examples, optimizer = start(nlp)
        for _ in range(5):
            losses = step(nlp, examples, optimizer)
        found.append((losses["tagger"], mixes_of(nlp, name)[0].get_param("w").copy()))
    for loss, w in found[1:]:
        np.testing.assert_allclose(loss, found[0][0], rtol=1e-3)
        np.testing.assert_allclose(w, found[0][1], rtol=1e-2, atol=1e-4)


def test_each_listener_has_a_mix_of_its_own(weights: Path) -> None:
    """Two in one model and one in another, from one pass of the biLM."""
    two = {
        "@architectures": "spacy-elmo.Tok2Vec.v1",
        "elmo": listening(),
        "output_elmo": listening(initial_weights=[0.0, 1.0, 2.0]),
    }
    nlp = make_pipeline(weights, two)
    nlp.add_pipe("tagger", name="other", config=tagger_config(listening()))
    assert [len(listeners_of(nlp, name)) for name in ("tagger", "other")] == [2, 1]
    examples, optimizer = start(nlp)
    passes = []
    bilm = nlp.get_pipe("elmo").bilm
    forward = bilm.forward
    bilm.forward = lambda parts: passes.append(1) or forward(parts)
    for _ in range(10):
        step(nlp, examples, optimizer)
    assert len(passes) == 10
    weights_of = [
        m.get_param("w").tolist() for name in ("tagger", "other") for m in mixes_of(nlp, name)
    ]
    assert len({tuple(w) for w in weights_of}) == 3
    assert nlp(TEXT).tensor.shape == (4, WIDTH)


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
        step(nlp, examples, lambda key, value, gradient: (value, gradient))
        noted = gradients_of(nlp, examples)
        return {name: noted[key] for key in noted for name in [key[1]] if "." in name}

    one, both = gradients(["a"]), gradients(["a", "b"])
    assert len(one) == len(numbers(make_nlp(weights, frozen=False).get_pipe("elmo").model))
    for silent in (None, "a", "b"):
        found = both if silent is None else gradients(["a", "b"], silent)
        for name, gradient in one.items():
            expected = 2 * gradient if silent is None else gradient
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found[name], expected, atol=1e-4 * scale, err_msg=name)


def test_every_parameter_of_the_biLM_gets_its_gradient(weights: Path) -> None:
    nlp, examples, _ = started(weights, listening(initial_weights=[0.3, 0.1, -0.2]), frozen=False)
    docs = [example.reference for example in examples]
    elmo, tagger = nlp.get_pipe("elmo"), nlp.get_pipe("tagger")
    bilm = bilm_of(elmo.model)
    rng = np.random.default_rng(0)
    tok2vec = tagger.model.get_ref("tok2vec")
    elmo.update([Example(doc, doc) for doc in docs], losses={})
    Y, backprop = tok2vec.begin_update(docs)
    dY = [rng.normal(size=y.shape).astype("float32") for y in Y]
    backprop(dY)
    elmo.batch.finish()

    def loss() -> float:
        elmo.set_annotations(docs, elmo.predict(docs))
        return sum(float((y * d).sum()) for y, d in zip(tok2vec.predict(docs), dY, strict=True))

    for name, parameter in bilm.named_parameters():
        gradient = parameter.grad.numpy()
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        with torch.no_grad():

            def changed() -> float:
                bilm.clear_caches()  # PyTorch does not see what NumPy writes
                return loss()

            found = finite_difference(changed, parameter.detach().numpy(), place, 2e-3)
        assert found == pytest.approx(float(gradient[place]), rel=0.03), name


def test_one_layer_alone(weights: Path) -> None:
    nlp, examples, optimizer = started(
        weights, listening(layers=1, gamma=0.5, mix_l2=0.1), store=["layers"]
    )
    [mix] = mixes_of(nlp, "tagger")
    doc = nlp(TEXT)
    [listener] = listeners_of(nlp, "tagger")
    np.testing.assert_array_equal(listener.predict([doc])[0], 0.5 * doc._.elmo_layers[1])
    for _ in range(3):
        losses = step(nlp, examples, optimizer)
    assert losses["elmo"] == 0  # the biLM is frozen
    gamma = mix.get_param("gamma")[0]
    assert gamma != 0.5
    np.testing.assert_array_equal(listener.predict([doc])[0], gamma * doc._.elmo_layers[1])
    [found] = [m for m in spacy_elmo.mixes(nlp) if m.component == "tagger"]
    assert (found.weights, found.gamma) == ((0, 1, 0), pytest.approx(float(gamma)))
    loaded = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert tags(loaded(TEXT)) == tags(nlp(TEXT))
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    block = nlp.config["components"]["tagger"]["model"]["tok2vec"]["mix"]
    assert (block["layers"], block["gamma"]) == (1, 0.5)
    assert tags(nlp(TEXT)) == tags(loaded(TEXT))


def test_a_mix_that_is_not_trainable(weights: Path) -> None:
    nlp, examples, optimizer = started(
        weights, listening(trainable=False, mix_l2=1.0, initial_weights=[1, 2, 3])
    )
    for _ in range(3):
        losses = step(nlp, examples, optimizer)
    [mix] = mixes_of(nlp, "tagger")
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
    [mix] = mixes_of(nlp, "tagger")
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
    said = r"'tagger' listens to 'elmo', which has not read the Doc.* is before it, enabled"
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


def test_other_weights_have_come_to_lie_where_those_were(own_weights: Path, tmp_path: Path) -> None:
    """What was saved is what counts, also for the shape of the listeners."""
    nlp, *_ = started(own_weights, listening(), steps=1)
    expected = nlp(TEXT)
    nlp.to_disk(tmp_path / "nlp")
    data = nlp.to_bytes()
    shutil.rmtree(own_weights)
    larger = dataclasses.replace(CONFIG, projection_dim=12, n_layers=3)
    write_weights(own_weights, config=larger)
    from_bytes = spacy.blank("en").from_config(nlp.config).from_bytes(data)
    for loaded in (spacy.load(tmp_path / "nlp"), from_bytes):
        assert max_difference(loaded(TEXT).tensor, expected.tensor) <= TOLERANCE
        assert tags(loaded(TEXT)) == tags(expected)
        examples, optimizer = start(loaded)
        step(loaded, examples, optimizer)


def test_other_files_where_the_weights_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A saved pipeline does not need them."""
    place = write_weights(tmp_path / "place")
    monkeypatch.chdir(place)
    nlp, *_ = started(".", listening())
    nlp.to_disk(tmp_path / "nlp")
    for file in place.iterdir():
        file.unlink()
    for name in ("config.json", "config.cfg"):
        (place / name).write_text("damaged")
    assert spacy.load(tmp_path / "nlp")(TEXT).tensor.any()


@pytest.mark.parametrize("frozen", [True, False])
def test_a_batch_that_is_over(weights: Path, frozen: bool) -> None:
    """A biLM that learns would lose its gradient, silently; a frozen one has none."""
    nlp, examples, optimizer = started(weights, listening(), frozen=frozen)
    elmo, tagger = nlp.get_pipe("elmo"), nlp.get_pipe("tagger")
    elmo.update(examples)
    tagger.update(examples, losses={})
    elmo.finish_update(optimizer)
    tagger.finish_update(optimizer)
    [mix] = mixes_of(nlp, "tagger")
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
    with pytest.raises(ValueError, match=r"nlp\.rehearse does not run it: run it on the Docs"):
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
        found.append(mixes_of(nlp, "tagger")[0].get_grad("w"))
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
    with pytest.raises(ValueError, match="retokenized"):
        nlp.update([example], sgd=optimizer, annotates=["merge_and_split"])


# The task models


def test_neither_elmo_nor_embedding(weights: Path) -> None:
    with pytest.raises(ValueError, match="neither 'elmo' nor 'embed'"):
        make_pipeline(weights, {"@architectures": "spacy-elmo.Tok2Vec.v1"})
