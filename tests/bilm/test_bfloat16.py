"""What a biLM computes in bfloat16 is close to what it computes in float32."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from threading import Barrier

import pytest
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.find import load_bilm

TEXT = """The bank raised its rates again .
Play
She sat on the bank of the river , and the boat went by without a sound .
안녕 zzyzx !"""
SENTENCES = [line.split() for line in TEXT.splitlines()]


@pytest.fixture
def bilm() -> BiLM:
    return load_bilm("en_sm")


def read(bilm: BiLM, sentences: list[list[str]] = SENTENCES) -> list[torch.Tensor]:
    with torch.no_grad():
        return bilm.read(sentences)[0]


def least_cosine(a: list[torch.Tensor], b: list[torch.Tensor]) -> float:
    """Over all layers of all tokens."""
    pairs = zip(a, b, strict=True)
    return min(float(torch.cosine_similarity(x, y, dim=2).min()) for x, y in pairs)


def test_the_embedded_bilm(bilm: BiLM) -> None:
    exact = read(bilm)
    rounded = read(bilm.set_precision("bfloat16"))
    assert 0.9995 < least_cosine(exact, rounded) < 1 - 1e-7
    assert all(map(torch.equal, rounded, read(bilm)))  # it is deterministic
    assert all(map(torch.equal, exact, read(bilm.set_precision("float32"))))


def test_a_sentence_hardly_depends_on_its_batch(bilm: BiLM) -> None:
    together = read(bilm.set_precision("bfloat16"))
    alone = [read(bilm, [words])[0] for words in SENTENCES]
    assert least_cosine(together, alone) > 0.9999


def test_gradients_and_warm_states_are_those_of_float32(bilm: BiLM) -> None:
    exact, warm = bilm.read(SENTENCES)[0], bilm.compute_warm_state()
    bilm.set_precision("bfloat16")
    assert all(map(torch.equal, bilm.read(SENTENCES)[0], exact))
    settings = []  # of the biLM meanwhile: other threads may read with it
    bilm.char_cnn.register_forward_pre_hook(
        lambda *_: settings.append((bilm.precision, bilm.training))
    )
    assert all(map(torch.equal, bilm.train().compute_warm_state(), warm))
    assert settings and set(settings) == {("bfloat16", True)}


@pytest.mark.filterwarnings("ignore:The compiled LSTM kernel")  # where it does not run
@pytest.mark.parametrize("settings", [("float32", False), ("float32", True), ("bfloat16", True)])
@pytest.mark.parametrize("copied", [deepcopy, lambda bilm: pickle.loads(pickle.dumps(bilm))])
def test_changed_weights_and_copies_are_converted_again(
    bilm: BiLM, copied: Callable[[BiLM], BiLM], settings: tuple[str, bool]
) -> None:
    before = read(bilm.set_precision(*settings))
    copy = copied(bilm)
    with torch.no_grad():
        copy.lstm[0].weight_ih.mul_(1.5)
    assert least_cosine(read(copy), before) < 0.999
    assert all(map(torch.equal, read(bilm), before))


def test_threads_share_what_is_converted(bilm: BiLM) -> None:
    bilm.set_precision("bfloat16")
    with ThreadPoolExecutor(8) as pool:
        start = Barrier(8)

        def convert(_: int) -> object:
            with torch.no_grad():
                start.wait(60)
                return bilm.parts()[1]

        first, *others = pool.map(convert, range(8))
    assert all(found is first for found in others)


def test_the_precisions(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    for has_bfloat16, chosen in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr("spacy_elmo.bilm.model.has_fast_bfloat16", lambda: has_bfloat16)  # noqa: B023
        assert bilm.set_precision("auto").precision == chosen
    with pytest.raises(ValueError, match=r"precision is 'int8'; known are 'float32', 'bfloat16"):
        bilm.set_precision("int8")
