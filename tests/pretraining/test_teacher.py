from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import spacy
import torch
from torch.nn import functional as F

import spacy_elmo
from spacy_elmo import Encoder
from spacy_elmo.pretraining.checkpoint import CHECKPOINT, WORDS_OF_THREAD, State
from spacy_elmo.pretraining.config import read_config
from spacy_elmo.pretraining.corpus import Shares, TrainingBatch, make_batch
from spacy_elmo.pretraining.prepare import find_reader
from spacy_elmo.pretraining.teacher import EncodedVectors, Teacher, find_teacher
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.pretraining.train_step import train_step
from spacy_elmo.util.threads import threads_for
from spacy_elmo.weights.find import load_bilm
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import save_bilm

from .helpers import (
    config_text,
    make_block,
    make_config,
    make_model,
    make_vocab,
    prose,
    refuses,
    same_weights,
    stop_after,
    write_text,
)

SIZE = 5  # of the teacher's vectors
VOCAB = make_vocab(word for words in prose() for word in words)
BLOCK = make_block(prose(), VOCAB)
ALL = np.arange(10)


def teach(sentences: list[list[str]]) -> list[Any]:
    """A vector of each word and of the word after it; none of the sentence "No ." """
    results: list[Any] = []
    for words in sentences:
        keys = [
            [sum(w.encode()), len(after)] for w, after in zip(words, [*words[1:], ""], strict=True)
        ]
        vectors = [np.random.default_rng(key).normal(size=SIZE) for key in keys]
        results.append(None if words == ["No", "."] else np.array(vectors))
    return results


def batch_of(shares: Shares = ((0, 1),)) -> TrainingBatch:
    return make_batch(BLOCK, ALL, shares, Teacher(teach, SIZE))


def make_state(n_threads: int = 1, **settings: Any) -> State:
    changes = {"training.dropout": 0.0, **{f"training.{k}": v for k, v in settings.items()}}
    changes["training.batch_words"] = n_threads * WORDS_OF_THREAD
    with threads_for(0, n_threads):
        return State(make_config(changes=changes), len(VOCAB), teacher_size=SIZE)


def test_each_vector_is_beside_its_token() -> None:
    [batch], [targets], *_ = batch_of()
    assert targets is not None
    vectors, tokens = targets
    n_words = sum(len(words) for words in prose() if words != ["No", "."])
    assert vectors.shape == (n_words, SIZE) and tokens.shape == (n_words,)
    found = [VOCAB.words[i] for i in batch.targets[tokens].tolist()]
    taken = [words for words in BLOCK.words(ALL) if words != ["No", "."]]
    assert found == [word for words in taken for word in words]
    expected = np.concatenate([v for v in teach(taken)])
    np.testing.assert_allclose(vectors.numpy(), expected, rtol=1e-6)


def test_shares_learn_what_the_whole_batch_would() -> None:
    def gradients(n_threads: int) -> list[torch.Tensor]:
        state = make_state(n_threads, teacher_weight=3.0)
        settings = make_config(changes={"training.max_grad_norm": 1e9}).training
        train_step(state, settings, batch_of(state.shares()), 0.0)
        return [p.grad for p in state.parameters if p.grad is not None]

    whole = gradients(1)
    assert len(whole) == len(make_state().parameters)
    for n_threads in (2, 4, 12):
        for a, b in zip(whole, gradients(n_threads), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-5 * float(a.abs().max()))


def test_the_layers_learn_the_vectors() -> None:
    torch.manual_seed(0)
    state, whole = make_state(teacher_weight=2.0), batch_of()
    [batch], [targets], *_ = whole
    assert targets is not None
    vectors, tokens = targets

    def similarity() -> float:
        with torch.no_grad():
            model = state.model.eval()
            layers, _ = model(model.char_cnn(batch.ids), batch.tokens, batch.lengths)
            x = state.loss.student(layers[:, tokens].transpose(0, 1).flatten(1))
            model.train()
            return float(F.cosine_similarity(x, vectors).mean())

    assert similarity() < 0.3
    before = [p.clone() for p in state.model.lstm.parameters()]
    for _ in range(250):
        train_step(state, make_config().training, whole, 0.02)
    assert similarity() > 0.9
    assert not any(map(torch.equal, before, state.model.lstm.parameters()))


def test_a_run_is_resumed_to_the_last_bit_and_its_models_know_no_teacher(
    tmp_path, monkeypatch
) -> None:
    text = write_text(tmp_path / "text.txt", prose())
    spacy.registry.misc("test.Teacher.v1")(lambda: teach)
    config = make_config(text, text, {"training.teacher": {"@misc": "test.Teacher.v1"}})
    pretrain(config, tmp_path / "whole", quiet=True)
    with monkeypatch.context() as patch:
        stop_after(patch, 7)
        assert pretrain(config, tmp_path / "parts", quiet=True).step == 7
    pretrain(config, tmp_path / "parts", resume=True, quiet=True)
    assert same_weights(tmp_path / "whole" / CHECKPOINT, tmp_path / "parts" / CHECKPOINT)
    alone = make_config(text, text)
    pretrain(alone, tmp_path / "alone", quiet=True)
    one, two = (load_bilm(tmp_path / name / "model-last") for name in ("whole", "alone"))
    assert one.state_dict().keys() == two.state_dict().keys()
    assert not torch.equal(one.encode(["clock"]), two.encode(["clock"]))
    refuses(r"Cannot resume, .*training\.teacher", alone, tmp_path / "parts", resume=True)


@pytest.mark.parametrize("layers", ["mix", "all"])
def test_vectors_are_read_as_elmo_encode_writes_them(tmp_path, layers) -> None:
    pytest.importorskip("pyarrow.parquet")
    model, _ = make_model(9)
    (tmp_path / "weights").mkdir()
    save_bilm(model, tmp_path / "weights", Card({"lang": "en"}))
    text, out = write_text(tmp_path / "text.txt", prose()), tmp_path / "out.npy"
    weights = str(tmp_path / "weights")
    spacy_elmo.encode(text, out, weights=weights, layers=layers, tokenized=True, dtype="float16")
    expected = Encoder(weights, layers=layers).encode([" ".join(prose()[5])]).vectors
    teacher = EncodedVectors(str(out))
    none, found = teacher([["never", "seen"], prose()[5]])
    assert none is None and found is not None
    np.testing.assert_allclose(found, expected.reshape(len(expected), -1), atol=1e-3)
    config = make_config(text, text)
    reader = find_reader(config, "train", tmp_path / "run")
    assert find_teacher(teacher, reader, 100) == (Teacher(teacher, found.shape[1]), 1.0)
    lengths = [len(words) for words in prose()]
    _, share = find_teacher(teacher, reader, max(lengths) - 1)  # the pieces have no vectors
    assert share == 1 - lengths.count(max(lengths)) / len(lengths)
    with pytest.raises(ValueError, match=f"no vectors for the first {len(lengths)} sentences"):
        find_teacher(teacher, reader, 1)
    with pytest.raises(ValueError, match=f"no vectors for the first {len(lengths)} sentences"):
        find_teacher(teacher, reader, 100, lambda words: [word.upper() for word in words])


def test_a_config_names_one(tmp_path) -> None:
    text = write_text(tmp_path / "text.txt", prose())
    path = tmp_path / "user.cfg"
    block = '\n[training.teacher]\n@misc = "spacy-elmo.EncodedVectors.v1"\npath = "vectors.npy"\n'
    path.write_text(config_text(make_config(text, text)) + block)
    config = read_config(path)
    refuses(r"\.teacher\].* the teacher's vectors vectors\.npy", config, tmp_path / "out")


def test_what_does_not_fit_is_named(tmp_path) -> None:
    text = write_text(tmp_path / "text.txt", prose())
    reader = find_reader(make_config(text, text), "train", tmp_path / "run")
    with pytest.raises(ValueError, match="no vectors for the first 10 sentences"):
        find_teacher(lambda sentences: [None for _ in sentences], reader, 100)
    for give, message in (
        (lambda ss: [np.ones((1, 3)) for _ in ss], r"gave the shape \(1, 3\) for \d+ words"),
        (lambda ss: [np.ones(len(s)) for s in ss], r"gave the shape \(\d+,\) for"),
        (lambda ss: [np.ones((len(s), 1)) for s in ss], f"D always {SIZE}"),  # not broadcast
        (lambda ss: [np.full((len(s), SIZE), np.nan) for s in ss], "are not finite"),
        (lambda ss: teach(ss)[1:], "gave 9 for 10"),
        (lambda ss: None, r"array \(n_words, D\) .* From this NoneType: "),
    ):
        with pytest.raises(ValueError, match=message):
            Teacher(give, SIZE).vectors(prose())
    spacy.registry.misc("test.NoTeacher.v1")(lambda: np.ones(3))
    config = make_config(text, text, {"training.teacher": {"@misc": "test.NoTeacher.v1"}})
    refuses("gives a ndarray; name what gives a function", config, tmp_path / "out")
    np.save(tmp_path / "bad.npy", np.ones((3, 2)))
    (tmp_path / "bad.tokens.jsonl").write_text('{"id": 0, "tokens": ["a", "b"]}\n')
    with pytest.raises(ValueError, match=r"bad\.npy.*3 vectors of 2 words"):
        EncodedVectors(str(tmp_path / "bad.npy"))
    (tmp_path / "bad.tokens.jsonl").write_text('{"id": 0, "text": "a b c"}\n')
    with pytest.raises(ValueError, match=r"bad\.tokens\.jsonl: .*tokens is of the type NoneType"):
        EncodedVectors(str(tmp_path / "bad.npy"))
    (tmp_path / "bad.tokens.jsonl").unlink()
    with pytest.raises(ValueError, match=r"their words .*bad\.tokens\.jsonl: No such file"):
        EncodedVectors(str(tmp_path / "bad.npy"))
    np.save(tmp_path / "flat.npy", np.ones(3))
    with pytest.raises(ValueError, match=r"flat\.npy: it is no array with a vector of each"):
        EncodedVectors(str(tmp_path / "flat.npy"))
    with pytest.raises(ValueError, match=r"vectors\.parquet', which is no \.npy file\. Write one"):
        EncodedVectors(str(tmp_path / "vectors.parquet"))


def test_a_teacher_may_give_tensors() -> None:
    def give(sentences: list[list[str]]) -> list[Any]:
        vectors = [None if v is None else torch.from_numpy(v) for v in teach(sentences)]
        return [None if v is None else v.bfloat16().requires_grad_() for v in vectors]

    targets = Teacher(give).targets(BLOCK.words(ALL))
    [expected] = batch_of().teacher_targets
    assert targets is not None and expected is not None
    torch.testing.assert_close(targets[0], expected[0].float(), rtol=1e-2, atol=0)
