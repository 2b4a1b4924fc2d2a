import multiprocessing
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

from spacy_elmo.pipeline.component import Elmo
from spacy_elmo.text.readers import BY_RULES
from spacy_elmo.weights.layout import Card

from .helpers import TOLERANCE, WIDTH, add_elmo, make_nlp, max_difference, vectors_of, write_weights
from .learning import LISTENER, tagger_config


def test_segments(weights):
    vectors = {}
    for segments in ("auto", "sents", "doc"):
        nlp = make_nlp(weights, segments=segments)
        words = ["One", ".", "Two", "three"]
        doc = nlp(Doc(nlp.vocab, words=words, sent_starts=[True, False, False, True]))
        vectors[segments] = doc.tensor
    np.testing.assert_array_equal(vectors["auto"], vectors["sents"])
    assert np.abs(vectors["auto"] - vectors["doc"]).max() > 1e-3


def test_constructing_opens_no_file(monkeypatch):
    spacy.blank("en").add_pipe("elmo")  # what Python itself has to load is loaded now

    def fail(*args, **kwargs):
        raise AssertionError(f"opened {args}")

    monkeypatch.setattr("builtins.open", fail)
    monkeypatch.setattr("io.open", fail)
    monkeypatch.setattr("spacy_elmo.weights.tensors.safe_open", fail)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": "nowhere/at-all"}})
    add_elmo(nlp, "elsewhere", "second")
    nlp.add_pipe("tagger", config=tagger_config({**LISTENER, "upstream": "second"}))
    assert not any(nlp.get_pipe(name).bilm.is_loaded for name in ("elmo", "second"))
    assert nlp.config["components"]["elmo"]["model"]["weights"] == "nowhere/at-all"


@pytest.mark.parametrize(
    ("use", "is_loaded"),
    [
        (lambda nlp: nlp(""), False),
        (lambda nlp: nlp("a"), True),
        (Language.initialize, True),
        (Language.to_bytes, True),
    ],
)
def test_weights_load_when_needed(weights, use, is_loaded):
    nlp = make_nlp(weights)
    elmo = nlp.get_pipe("elmo")
    assert not elmo.bilm.is_loaded
    use(nlp)
    assert elmo.bilm.is_loaded == is_loaded


@registry.tokenizers("test.SplitAtSpaces.v1")
def make_tokenizer() -> Any:
    return lambda nlp: lambda text: Doc(nlp.vocab, words=text.split())


LANGUAGE = r"language is 'is'.*trained on 'en'.*Set 'weights' to weights of 'is'"
TOKENIZER = r"tokenizer is a {}, but .* on the words of '{}'.*nlp\.tokenizer"
SPLIT = "test.SplitAtSpaces.v1"


@pytest.mark.parametrize(
    ("lang", "tokenizer", "card", "said"),
    [
        ("is", BY_RULES, {"lang": "en"}, LANGUAGE),
        ("en", BY_RULES, {"lang": "en"}, None),
        ("xx", BY_RULES, {"lang": "en"}, None),
        ("de", BY_RULES, {"lang": "xx"}, None),
        ("de", BY_RULES, {}, None),
        ("en", BY_RULES, {"lang": "en", "tokenizer": BY_RULES}, None),
        ("en", BY_RULES, {"lang": "en", "tokenizer": SPLIT}, TOKENIZER.format("Tokenizer", SPLIT)),
        ("en", SPLIT, {"lang": "en", "tokenizer": SPLIT}, None),
        ("en", SPLIT, {"lang": "en", "tokenizer": BY_RULES}, TOKENIZER.format(".*", BY_RULES)),
    ],
)
def test_weights_of_other_texts_warn_once(
    tmp_path: Path, lang: str, tokenizer: str, card: dict[str, str], said: str | None
) -> None:
    """Of another language, or with another tokenizer."""
    weights = write_weights(tmp_path / "w", card=Card(card))
    nlp = spacy.blank(lang, config={"nlp": {"tokenizer": {"@tokenizers": tokenizer}}})
    add_elmo(nlp, weights)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nlp("A bank.")
        list(nlp.pipe(["one", "two"]))
        nlp.get_pipe("elmo").model.copy().predict([nlp("three")])
        nlp.get_pipe("elmo").to_bytes()
    assert len(caught) == (said is not None)
    assert said is None or re.search(said, str(caught[0].message))


def test_two_components(weights, tmp_path):
    other = write_weights(tmp_path / "other", seed=1)
    nlp = make_nlp(weights, store=["layers"])
    settings = {"gamma": 2.0, "initial_weights": [0.0, 1.0, 2.0], "segments": "doc"}
    add_elmo(nlp, other, "second", **settings)
    nlp.to_disk(tmp_path / "saved")
    one, two = make_nlp(weights), make_nlp(other, **settings)
    text = "One sentence. And another."
    for pipeline in (nlp, spacy.load(tmp_path / "saved")):
        doc = pipeline(text)
        assert max_difference([doc.tensor], [two(text).tensor]) <= TOLERANCE
        np.testing.assert_array_equal(doc[0]._.elmo, doc.tensor[0])
        with pipeline.select_pipes(disable=["second"]):
            assert max_difference([pipeline(text).tensor], [one(text).tensor]) <= TOLERANCE


def test_stored_layers_are_the_docs_own(weights):
    """They are not rows of what was read together, which would all stay in memory."""
    nlp = make_nlp(weights, store=["layers"])
    for doc in nlp.pipe(["one two three", "four five", "six", "a longer text. of two sentences"]):
        assert doc._.elmo_layers.flags.c_contiguous


def test_component_from_its_class(weights):
    nlp = make_nlp(weights)
    with pytest.raises(ValueError, match=r"spacy-elmo\.Elmo\.v1"):
        Elmo(nlp.vocab, nlp.get_pipe("elmo").model.get_ref("mix"))


SCRIPT = """
import sys, warnings
import numpy as np
import torch
from tests.pipeline.helpers import N_LAYERS, TEXTS, TOLERANCE, make_nlp, max_difference, vectors_of

if __name__ == "__main__":
    weights, method = sys.argv[1:]
    torch.multiprocessing.set_start_method(method)
    torch.set_num_threads(2)
    assert torch.get_num_threads() == 2
    warnings.simplefilter("error")
    nlp = make_nlp(weights, store=["layers"], vectors="vocab")
    texts = [*TEXTS, *(text + " And more. " * 30 for text in TEXTS)]
    expected = list(nlp.pipe(texts))
    torch.randn(500, 500) @ torch.randn(500, 500)  # the parent's threads exist now
    docs = list(nlp.pipe(texts, n_process=2, batch_size=3))
    assert [doc.text for doc in docs] == texts
    assert max_difference(vectors_of(docs), vectors_of(expected)) <= TOLERANCE
    for doc, other in zip(docs, expected):
        assert max_difference([doc._.elmo], [other._.elmo]) <= TOLERANCE
        assert doc._.elmo_layers.shape == (N_LAYERS, len(doc), doc.tensor.shape[1])
    assert torch.get_num_threads() == 2
    print("well")
"""


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(method, marks=pytest.mark.slow if method == "forkserver" else ())
        for method in multiprocessing.get_all_start_methods()
    ],
)
def test_two_processes_after_the_parent_used_threads(weights, tmp_path, method):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    env["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [sys.executable, script, weights, method]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr, done.returncode) == ("well\n", "", 0)


def test_a_prediction_changes_nothing_that_is_saved(weights):
    nlp = make_nlp(weights)
    before = nlp.to_bytes(exclude=["vocab"])
    nlp("The bank lent us money.")
    assert nlp.to_bytes(exclude=["vocab"]) == before
    assert nlp.get_pipe("elmo").model.get_dim("nO") == WIDTH


def test_no_docs_need_no_weights_that_are_there(tmp_path):
    nlp = make_nlp(tmp_path / "nowhere", width=WIDTH)
    assert list(nlp.pipe([])) == []
    vectors_of([nlp(""), *nlp.pipe(["", ""]), nlp(Doc(nlp.vocab))])
    with pytest.raises(ValueError, match="Cannot find the ELMo weights"):
        nlp(" ")
