"""Who listens to whom, where spaCy's own list of a component's listeners does not tell."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from spacy.language import Language
from thinc.api import SGD, Adam

from .helpers import WIDTH, add_elmo, make_nlp, max_difference, write_weights
from .learning import (
    EMBED,
    LISTENER,
    TEXT,
    listening,
    make_examples,
    make_pipeline,
    numbers,
    start,
    start_two,
    step,
    tagger_config,
)

NESTED = {
    "@architectures": "spacy-elmo.Tok2Vec.v1",
    "elmo": listening(gamma=2.0),
    "embed": EMBED,
}


def trained(weights: Path) -> Language:
    nlp = make_pipeline(weights, listening(), frozen=False)
    examples, optimizer = start(nlp)
    step(nlp, examples, optimizer)
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
    after = numbers(elmo.model)
    assert all(not np.array_equal(after[name], value) for name, value in before.items())
    assert nlp(TEXT)[0].tag_


def test_annotated_first_then_fine_tuned(weights: Path) -> None:
    """What was held of an annotating biLM is not taken for what one that learns has read."""
    nlp = trained(weights)
    examples = make_examples(nlp)
    optimizer = Adam(0.01)
    before = numbers(nlp.get_pipe("elmo").model)
    for _ in range(2):  # from the second time on, what was read is held
        nlp.update(examples, sgd=optimizer, exclude=["elmo"], annotates=["elmo"])
    unchanged = numbers(nlp.get_pipe("elmo").model)
    assert all(np.array_equal(unchanged[name], value) for name, value in before.items())
    for _ in range(2):
        step(nlp, examples, optimizer)
    after = numbers(nlp.get_pipe("elmo").model)
    assert all(not np.array_equal(after[name], value) for name, value in before.items())
    fresh = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    for example in examples:
        docs = [each(example.reference.copy()) for each in (nlp, fresh)]
        assert max_difference([docs[0].tensor], [docs[1].tensor]) < 1e-6


def test_annotating_while_it_learns(weights: Path) -> None:
    """Gradients are heard also if the component writes to the Docs before the others learn."""
    steps = []
    for annotates in ([], ["elmo"]):
        nlp = trained(weights)
        examples = make_examples(nlp)
        nlp.update(examples, sgd=False, annotates=annotates)
        nlp.get_pipe("elmo").finish_update(Adam(0.01))
        steps.append(numbers(nlp.get_pipe("elmo").model))
    assert all(np.array_equal(steps[1][name], value) for name, value in steps[0].items())


def test_a_batch_that_is_done_with_is_not_spoken_of_again(weights: Path) -> None:
    nlp = trained(weights)
    examples = make_examples(nlp)
    elmo, tagger = nlp.get_pipe("elmo"), nlp.get_pipe("tagger")
    elmo.update(examples)
    tagger.update(examples)
    elmo.finish_update(Adam(0.01))
    before = numbers(elmo.model)
    tagger.update(examples)  # the Docs still have their layers
    elmo.finish_update(Adam(0.01))
    after = numbers(elmo.model)
    assert all(np.array_equal(after[name], value) for name, value in before.items())


def test_a_batch_that_is_learned_from_in_parts(weights: Path) -> None:
    found = []
    for size in (1, 3, 8):
        nlp = trained(weights)
        examples = make_examples(nlp)
        elmo, tagger = nlp.get_pipe("elmo"), nlp.get_pipe("tagger")
        losses = elmo.update(examples)
        for start_of in range(0, len(examples), size):
            tagger.update(examples[start_of : start_of + size])
        elmo.finish_update(SGD(0.1, grad_clip=0.0))
        found.append((losses["elmo"], numbers(elmo.model)))
    for loss, weights_after in found[1:]:
        assert loss == pytest.approx(found[0][0], rel=1e-4)
        for name, value in found[0][1].items():
            np.testing.assert_allclose(weights_after[name], value, atol=1e-6)


def test_one_that_is_silent_annotates_next(weights: Path) -> None:
    """A batch that a listener of spaCy's had nothing to say to does not stay with it."""
    nlp = make_nlp(weights)
    examples = start_two(nlp, LISTENER)
    nlp.update(examples, sgd=False, exclude=["morphologizer"])
    nlp.get_pipe("elmo").finish_update(Adam(0.01))
    others = make_examples(nlp, 3)
    losses = nlp.update(others, sgd=False, exclude=["elmo"], annotates=["elmo"])
    assert losses["tagger"] > 0


def test_a_batch_that_fails_is_left_out(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that the memory of a GPU does not suffice for."""
    nlp = trained(weights)
    examples, optimizer = make_examples(nlp), Adam(0.01)

    backward = torch.autograd.backward

    def no_memory(*arguments: Any, **named: Any) -> None:
        backward(*arguments, **named)
        raise MemoryError

    nlp.update(examples, sgd=False)
    with monkeypatch.context() as patched:
        patched.setattr("torch.autograd.backward", no_memory)
        with pytest.raises(MemoryError):
            nlp.get_pipe("elmo").finish_update(optimizer)
    before = numbers(nlp.get_pipe("elmo").model)
    step(nlp, examples, optimizer)
    after = numbers(nlp.get_pipe("elmo").model)
    assert any(not np.array_equal(after[name], value) for name, value in before.items())


def test_a_new_training_has_nothing_of_the_last_one(weights: Path) -> None:
    nlp = trained(weights)
    elmo = nlp.get_pipe("elmo")
    nlp.update(make_examples(nlp), sgd=Adam(0.01))  # leaves gradients for the next batch
    nlp.initialize()
    before = numbers(elmo.model)
    elmo.update(make_examples(nlp), sgd=SGD(0.1))
    after = numbers(elmo.model)
    assert all(np.array_equal(after[name], value) for name, value in before.items())


def test_docs_of_the_initialization_are_read_like_others(weights: Path) -> None:
    nlp = make_pipeline(weights, listening())
    examples, _ = start(nlp)
    with nlp.select_pipes(disable="elmo"), pytest.raises(ValueError, match="has not read the Doc"):
        nlp.update(examples)
    with pytest.raises(ValueError, match="has not read the Doc"):
        nlp.get_pipe("tagger").predict([examples[0].predicted])


@pytest.mark.parametrize("tok2vec", [listening(), NESTED])
def test_copied(weights: Path, tok2vec: dict) -> None:
    nlp = make_pipeline(weights, tok2vec)
    examples, optimizer = start(nlp)
    step(nlp, examples, optimizer)
    doc = nlp(TEXT)
    model = nlp.get_pipe("tagger").model
    copied = model.copy()
    assert max_difference(copied.predict([doc]), model.predict([doc])) == 0
    mixes = [[n for n in m.walk() if n.name == "elmo-scalar-mix"] for m in (model, copied)]
    assert mixes[0][0] is not mixes[1][0]


# spaCy's listeners read doc.tensor


def with_two(weights: Path, upstream: str, order: list[str]) -> Language:
    nlp = spacy.blank("en")
    for name in order:
        if name == "tagger":
            nlp.add_pipe("tagger", config=tagger_config({**LISTENER, "upstream": upstream}))
        elif name == "tok2vec":
            model = {"@architectures": "spacy.HashEmbedCNN.v2", "width": WIDTH, "depth": 1,
                     "embed_size": 50, "window_size": 1, "maxout_pieces": 2,
                     "subword_features": True, "pretrained_vectors": None}  # fmt: skip
            nlp.add_pipe("tok2vec", config={"model": model})
        else:
            add_elmo(nlp, weights, name)
    return nlp


@pytest.mark.parametrize(
    ("upstream", "order", "said"),
    [
        ("elmo", ["elmo", "other", "tagger"], r"'tagger' learns from 'elmo'.*'other' has written"),
        ("elmo", ["elmo", "tok2vec", "tagger"], "'tok2vec' has written"),
        ("*", ["tok2vec", "elmo", "tagger"], r'upstream = "\*", and \'elmo\' is not the only one'),
        ("elmo", ["other", "elmo", "tagger"], None),
        ("elmo", ["elmo", "tagger", "tok2vec"], None),
        ("*", ["elmo", "tagger"], None),
        ("*", ["elmo", "tagger", "tok2vec"], None),
    ],
)
def test_tensors_of_another(
    weights: Path, upstream: str, order: list[str], said: str | None
) -> None:
    nlp = with_two(weights, upstream, order)
    examples = make_examples(nlp)
    if said is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nlp.initialize(lambda: examples)
    else:
        with pytest.warns(UserWarning, match=said):
            nlp.initialize(lambda: examples)


def test_the_wrong_width_of_one_that_names_nobody(weights: Path) -> None:
    nlp = make_pipeline(weights, {**LISTENER, "upstream": "*", "width": 8})
    with pytest.raises(ValueError, match=rf'width = 8.*Set it to {WIDTH}.*upstream is "\*"'):
        nlp.initialize(lambda: make_examples(nlp))


def test_weights_that_may_not_be_read(
    own_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A saved pipeline does not need the weights that it was made from."""
    nlp = make_pipeline(write_weights(tmp_path / "private"), listening())
    start(nlp)
    nlp.to_disk(tmp_path / "nlp")
    expected = nlp(TEXT).tensor
    is_dir = Path.is_dir

    def refused(path: Path) -> bool:
        if path.name == "private":
            raise PermissionError(13, "Permission denied")
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    assert max_difference([spacy.load(tmp_path / "nlp")(TEXT).tensor], [expected]) < 1e-6
    with pytest.raises(ValueError, match=r"Cannot read the ELMo weights.*private.*denied"):
        make_nlp(tmp_path / "private")("the bank")
