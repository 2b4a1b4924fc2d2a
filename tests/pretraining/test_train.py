from __future__ import annotations

import re
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining import evaluation
from spacy_elmo.pretraining import train as loop
from spacy_elmo.pretraining.checkpoint import CHECKPOINT, Progress, State, read_checkpoint
from spacy_elmo.pretraining.config import PretrainConfig, read_config
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.loss import BiLMLoss
from spacy_elmo.pretraining.schedule import learning_rate
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.find import find_weights, load_bilm

from .helpers import (
    BEST_PERPLEXITY,
    SENTENCES,
    contents,
    make_block,
    make_config,
    prose,
    refuses,
    same_weights,
    stop_after,
    write_text,
)

FILES = ["checkpoint.safetensors", "log.jsonl", "model-best", "model-last", "pretrain.cfg", "vocab.txt"]  # fmt: skip  # noqa: E501


MIXED = {"softmax.kind": "sampled", "softmax.n_candidates": 6, "training.dropout": 0.2}


def small_run(paths: tuple[Path, Path], changes: dict[str, Any] | None = None) -> PretrainConfig:
    """Twenty steps with all that is random: dropout, candidates, and a corpus of two groups."""
    return make_config(*paths, {**MIXED, "corpus.buffer_words": 200, **(changes or {})})


def entries_of(out: Path) -> list[dict[str, Any]]:
    """The log without what the clock says."""
    return [
        {key: value for key, value in entry.items() if key != "seconds"}
        for entry in read_log(out / "log.jsonl")
    ]


def same_runs(one: Path, other: Path) -> bool:
    names = [CHECKPOINT, "model-last/weights.safetensors", "model-best/weights.safetensors"]
    names += ["model-last/head.safetensors", "model-best/head.safetensors"]
    return all(same_weights(one / name, other / name) for name in names)


@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_a_text_is_learned(tmp_path, kind) -> None:
    """Down to its entropy, and no further."""
    train = write_text(tmp_path / "train.txt", SENTENCES * 10)
    dev = write_text(tmp_path / "dev.txt", SENTENCES)
    changes = {
        "softmax.kind": kind,
        "softmax.n_candidates": 8,
        "training.max_steps": 600,
        "training.decay_steps": 300,
        "training.eval_every": 15,
        "training.dropout": 0.05,
    }
    pretrain(make_config(train, dev, changes), tmp_path / "out", quiet=True)
    log = [entry for entry in read_log(tmp_path / "out" / "log.jsonl") if "mean" in entry]
    assert log[0]["step"] == 15
    for direction in ("forward", "backward", "mean"):
        assert log[0][direction] > 2.5
        assert BEST_PERPLEXITY - 1e-3 < log[-1][direction] < 1.03 * BEST_PERPLEXITY


def test_what_a_run_leaves(paths, tmp_path) -> None:
    out = tmp_path / "some" / "out"
    config = small_run(paths)
    progress = pretrain(config, out, quiet=True)
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert read_config(out / "pretrain.cfg") == config
    assert read_checkpoint(out / CHECKPOINT)[0] == progress
    assert progress.step == 20
    log = read_log(out / "log.jsonl")
    assert [entry["step"] for entry in log if "loss" in entry] == [5, 10, 15, 20]
    assert [entry["step"] for entry in log if "mean" in entry] == [10, 20, 20, 20]
    assert [entry["model"] for entry in log[-2:]] == ["model-best", "model-last"]
    for name in ("model-best", "model-last"):
        statistics = find_weights(out / name).statistics()
        assert statistics is not None and statistics.frequencies
    assert progress.best == min(entry["mean"] for entry in log if "mean" in entry)


def test_models_have_the_perplexity_that_the_log_says(paths, tmp_path) -> None:
    """Here the last one is worse than the best one."""
    changes = {"training.learning_rate": 0.5, "training.eval_every": 1}
    pretrain(small_run(paths, changes), tmp_path / "out", quiet=True)
    results = {}
    for entry in read_log(tmp_path / "out" / "log.jsonl")[-2:]:
        directory = tmp_path / "out" / entry["model"]
        head, vocab = load_head(directory)
        block = make_block((line.split() for line in paths[1].read_text().splitlines()), vocab)
        result = evaluate(load_bilm(directory), head, block)
        for direction in ("forward", "backward", "mean"):
            assert getattr(result, direction) == pytest.approx(entry[direction], rel=1e-5)
        assert (result.n_predicted, result.n_unknown) == (entry["n_predicted"], entry["n_unknown"])
        assert result.n_unknown == 2
        results[entry["model"]] = result.mean
    assert results["model-best"] < results["model-last"]


def test_the_vocabulary_is_that_of_the_training_text_or_a_given_one(paths, tmp_path) -> None:
    given = [*SPECIALS, "cows", "moo", "a", "b", "c", "d", "e"]
    Vocabulary(given).write(tmp_path / "vocab.txt")
    counted = pretrain_words(small_run(paths, {"vocab.min_count": 2}), tmp_path / "counted")
    assert counted[:4] == [*SPECIALS, "."] and "Rain" not in counted
    config = small_run(paths, {"paths.vocab": str(tmp_path / "vocab.txt")})
    assert pretrain_words(config, tmp_path / "given") == given
    # As the biLM reads the words of the text.
    Vocabulary([*SPECIALS, "caf\u00e9", "NO", "cafe\u0301"]).write(tmp_path / "vocab.txt")
    changes = {"model.unicode_normalization": "NFD", "model.lower_capitals": True}
    config = small_run(paths, {"paths.vocab": str(tmp_path / "vocab.txt"), **changes})
    assert pretrain_words(config, tmp_path / "read") == [*SPECIALS, "cafe\u0301", "NO"]


def pretrain_words(config: PretrainConfig, out: Path) -> list[str]:
    pretrain(config, out, quiet=True)
    [words, *others] = [Vocabulary.read(path).words for path in out.rglob("vocab.txt")]
    assert len(others) == 2 and all(other == words for other in others)
    return words


def test_runs_are_reproducible_and_the_seed_matters(paths, tmp_path) -> None:
    for name, seed in [("one", 0), ("same", 0), ("other", 1)]:
        config = small_run(paths, {"training.seed": seed, "training.max_steps": 8})
        pretrain(config, tmp_path / name, quiet=True)
    assert same_runs(tmp_path / "one", tmp_path / "same")
    assert not same_runs(tmp_path / "one", tmp_path / "other")


@pytest.mark.parametrize(("kind", "number"), [("full", signal.SIGINT), ("sampled", signal.SIGTERM)])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    paths, tmp_path, monkeypatch, kind, number
) -> None:
    config = small_run(paths, {"softmax.kind": kind, "training.log_every": 1})
    pretrain(config, tmp_path / "whole", quiet=True)
    out = tmp_path / "parts"
    for resume, step in [(False, 1), (True, 7), (True, 10), (True, 13)]:
        stop_after(monkeypatch, step, number)
        assert pretrain(config, out, resume=resume, quiet=True).step == step
        assert load_bilm(out / "model-last").config == config.model
    monkeypatch.undo()
    assert pretrain(config, out, resume=True, quiet=True).step == 20
    assert same_runs(tmp_path / "whole", out)
    assert entries_of(tmp_path / "whole") == entries_of(out)
    assert sorted(path.name for path in out.iterdir()) == FILES


def test_a_killed_run_goes_on_from_its_checkpoint(paths, tmp_path, monkeypatch) -> None:
    """Later steps are lost, and their entries in the log with them."""
    config = small_run(paths)
    out = tmp_path / "out"
    stop_after(monkeypatch, 10)
    pretrain(config, out, quiet=True)
    early = (out / CHECKPOINT).read_bytes()
    monkeypatch.undo()
    pretrain(config, out, resume=True, quiet=True)
    shutil.copytree(out, tmp_path / "whole")
    (out / CHECKPOINT).write_bytes(early)
    with open(out / "log.jsonl", "a", encoding="utf-8") as log:
        log.write('{"step": 21, "lo')
    pretrain(config, out, resume=True, quiet=True)
    assert same_runs(tmp_path / "whole", out)
    assert entries_of(tmp_path / "whole") == entries_of(out)


@pytest.mark.parametrize("was_killed", [False, True])
def test_resuming_before_the_first_checkpoint_starts_from_the_beginning(
    paths, tmp_path, monkeypatch, was_killed
) -> None:
    """Also in a directory that is not there yet."""
    config, out = small_run(paths), tmp_path / "out"
    pretrain(config, tmp_path / "whole", quiet=True)
    if was_killed:
        monkeypatch.setattr(State, "save", lambda *given: sys.exit())
        with pytest.raises(SystemExit):
            pretrain(config, out, quiet=True)
        monkeypatch.undo()
        refuses(r"overwrite them.* continue that run with --resume", config, out)
    assert not (out / CHECKPOINT).exists()
    pretrain(config, out, resume=True, quiet=True)
    assert same_runs(tmp_path / "whole", out)


def test_a_finished_run_is_evaluated_again_or_made_longer(paths, tmp_path, capsys) -> None:
    config = small_run(paths)
    pretrain(config, tmp_path / "out", quiet=True)
    shutil.copytree(tmp_path / "out", tmp_path / "before")
    pretrain(config, tmp_path / "out", resume=True)
    assert same_runs(tmp_path / "before", tmp_path / "out")
    assert entries_of(tmp_path / "before") == entries_of(tmp_path / "out")
    said = capsys.readouterr().err
    assert "finished its 20 steps already; to train longer, set a higher --training.max" in said
    assert "Changed since the checkpoint" not in said
    longer = small_run(paths, {"training.max_steps": 30})
    assert pretrain(longer, tmp_path / "out", resume=True).step == 30
    assert "Changed since the checkpoint: training.max_steps: 20 → 30" in capsys.readouterr().err
    assert read_config(tmp_path / "out" / "pretrain.cfg") == longer
    steps = [e["step"] for e in read_log(tmp_path / "out" / "log.jsonl") if "model" in e]
    assert steps == [30, 30]


def test_a_best_model_that_is_gone_is_written_again(paths, tmp_path) -> None:
    """Also if the later ones are worse."""
    out = tmp_path / "out"
    best = pretrain(small_run(paths), out, quiet=True).best
    shutil.rmtree(out / "model-best")
    worse = small_run(paths, {"training.max_steps": 30, "training.learning_rate": 0.5})
    progress = pretrain(worse, out, resume=True, quiet=True)
    assert best is not None and progress.best is not None and progress.best > best
    assert (out / "model-best").exists()


def test_a_run_that_diverges_keeps_its_last_good_state(paths, tmp_path, monkeypatch) -> None:
    """Though a checkpoint is due after every step, and losses are looked at seldom."""
    real = BiLMLoss.forward
    calls: list[int] = []

    def diverge(*arguments: Any) -> torch.Tensor:
        calls.append(1)
        return real(*arguments) * (np.nan if len(calls) == 13 else 1.0)

    monkeypatch.setattr(BiLMLoss, "forward", diverge)
    out = tmp_path / "out"
    config = small_run(paths, {"training.log_every": 100, "training.checkpoint_seconds": 0})
    with pytest.raises(ValueError) as error:
        pretrain(config, out, quiet=True)
    said = str(error.value)
    assert "not finite at step 13. Resume from the checkpoint of step 12 with --resume" in said
    assert said.endswith(f"start a new run --from '{out / 'model-best'}'.")
    assert read_checkpoint(out / CHECKPOINT)[0].step == 12
    assert all(bool(p.isfinite().all()) for p in load_bilm(out / "model-best").parameters())
    assert not (out / "model-last").exists()
    monkeypatch.undo()
    pretrain(config, out, resume=True, quiet=True)
    pretrain(config, tmp_path / "whole", quiet=True)
    assert same_runs(out, tmp_path / "whole")


def test_learning_rate() -> None:
    settings = {"max_steps": 100, "warmup_steps": 10, "decay_steps": 20, "learning_rate": 0.5}
    config = make_config(changes={f"training.{name}": n for name, n in settings.items()})
    rates = [learning_rate(config.training, Progress(step=step)) for step in range(100)]
    np.testing.assert_allclose(rates[:10], 0.5 * np.arange(1, 11) / 10)
    assert rates[10:80] == [0.5] * 70
    np.testing.assert_allclose(rates[80:], 0.5 * np.arange(20, 0, -1) / 20)
    constant = make_config(changes={"training.warmup_steps": 0, "training.decay_steps": 0})
    steps = [Progress(step=step) for step in range(20)]
    assert {learning_rate(constant.training, progress) for progress in steps} == {0.02}


def test_what_a_run_prints(paths, tmp_path, capsys) -> None:
    write_text(paths[0] / "c.txt", [["word"] * 40, ["ж" * 30, "x" * 49]])
    config = small_run(paths, {"corpus.max_words": 16, "vocab.max_size": 20})
    pretrain(config, tmp_path / "out")
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    n_words = sum(len(s) for s in prose() + prose()[::2] + SENTENCES * 2) + 42
    assert "`python -m spacy elmo tokenize`" in lines.pop(0)  # for who gives raw text
    assert lines[0].startswith(f"train: {n_words} words in 25 sentences, ")
    assert "<UNK>; 2 long sentences split; 2 words truncated to 48 bytes" in lines[0]
    assert lines[1] == "dev: 5 sentences; vocabulary of 20"
    assert re.search(r"M parameters, head: 0\.0 M; cpu, processes: 1, threads: 1$", lines[2])
    assert any(line.startswith("step 10: perplexity ") for line in lines)
    for line, entry in zip(lines[-2:], read_log(tmp_path / "out" / "log.jsonl")[-2:], strict=True):
        assert line.startswith(f"{entry['model']}: perplexity {entry['mean']:.2f} (forward ")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("paths.train", None, r"\[paths\] train is not set; .*--paths\.train"),
        ("paths.dev", None, r"\[paths\] dev is not set; .*--paths\.dev PATH"),
        ("paths.dev", ["empty.txt"], "no words in the dev text.*empty.txt"),
        ("paths.train", "damaged.txt.gz", r"Cannot read .*damaged\.txt\.gz"),
        ("paths.vocab", "dev.txt", r"dev\.txt must begin with <S>"),
        ("vocab.min_count", 99, r"min_count \(99\) times; lower it"),
        ("paths.vocab", "vocab.txt", r"vocab\.txt' .* has none"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    paths, tmp_path, monkeypatch, name, value, message
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").write_text("\n\n")
    Path("damaged.txt.gz").write_bytes(b"\x1f\x8b damaged")
    Vocabulary(SPECIALS).write(Path("vocab.txt"))
    refuses(message, small_run(paths, {name: value}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_run_is_not_written_over(paths, tmp_path) -> None:
    out = tmp_path / "out"
    pretrain(small_run(paths), out, quiet=True)
    before = contents(out)
    refuses(r"overwrite them; .* with --resume", small_run(paths), out)
    assert contents(out) == before
    (out / CHECKPOINT).unlink()
    found = "vocab.txt, pretrain.cfg, model-best, model-last, log.jsonl"
    refuses(f"has {found} already", small_run(paths), out)
    # A model has a vocabulary, as a run that ended before its first checkpoint.
    refuses(r"head\.safetensors already", small_run(paths), out / "model-last", resume=True)
    del before[str(out / CHECKPOINT)]
    assert contents(out) == before
    for _ in range(2):  # with models that are there, or links to them
        refuses(r"has model-best, .* already", small_run(paths), out, resume=True)
        shutil.rmtree(out / "model-best", ignore_errors=True)
        if not (out / "model-best").is_symlink():
            (out / "model-best").symlink_to(tmp_path / "gone")
    (tmp_path / "file").touch()
    refuses("is a file; give a directory", small_run(paths), tmp_path / "file")


def test_a_held_out_text_of_one_word(paths, tmp_path) -> None:
    one = write_text(tmp_path / "one.txt", [["dogs"]])
    assert pretrain(small_run((paths[0], one)), tmp_path / "out", quiet=True).step == 20
    log = read_log(tmp_path / "out" / "log.jsonl")
    assert [entry["model"] for entry in log[-2:]] == ["model-best", "model-last"]
    assert find_weights(tmp_path / "out" / "model-last").statistics() is None


def test_text_beside_the_files_of_a_run(tmp_path) -> None:
    text = write_text(tmp_path / "text.txt", prose())
    refuses(r"is the directory of the text 'text\.txt'", make_config(text, text), tmp_path)
    assert list(tmp_path.iterdir()) == [text]


def test_a_run_is_not_resumed_as_another(paths, tmp_path) -> None:
    """Nor on another text, or its files in another order; that they are elsewhere changes
    nothing."""
    out, (train, dev), vocab = tmp_path / "out", paths, tmp_path / "vocab.txt"
    pretrain(small_run(paths), out, quiet=True)
    before = contents(out)

    def differs(said: str, **changes: Any) -> None:
        settings = {name.replace("__", "."): value for name, value in changes.items()}
        refuses(said, small_run(paths, settings), out, resume=True)
        assert contents(out) == before

    differs(r"Cannot resume, .*dim: 16 → 24; .*seed: 0 → 3", model__dim=24, training__seed=3)
    differs(r"Cannot resume, .*head_first: \d+ → 9", training__head_first=9)
    differs(r"Cannot resume, .*eval_words: \d+ → 9", training__eval_words=9)
    Vocabulary([*SPECIALS, "other"]).write(vocab)
    differs(r"Cannot resume, .*paths\.vocab: None → '", paths__vocab=str(vocab))
    for text in (train / "b.txt", dev):
        words = text.read_text()
        text.write_text("Something else .\n")
        differs("Cannot resume: the texts are not")
        text.write_text(words)
    (train / "a.txt").rename(train / "z.txt")
    differs("Cannot resume: the texts are not")
    (train / "z.txt").rename(train / "a.txt")
    moved = small_run((train.rename(tmp_path / "moved"), dev))
    assert pretrain(moved, out, resume=True, quiet=True).step == 20


def test_a_run_writes_into_its_own_directory_only(paths, tmp_path) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine"
    pretrain(small_run(paths), out, quiet=True)
    (out / "model-last").rename(mine)
    (mine / "letter.txt").write_text("mine")
    (out / "model-last").symlink_to(mine)
    before = contents(mine)
    longer = small_run(paths, {"training.max_steps": 99})
    refuses(r"Cannot resume: '.*model-last' is a link", longer, out, resume=True)
    shutil.rmtree(out), out.mkdir()
    (out / "vocab.txt").symlink_to(mine / "letter.txt")
    refuses(r"has vocab\.txt already.*; choose another directory\.", longer, out, resume=True)
    assert contents(mine) == before


def test_evaluations_are_at_the_highest_precision(paths, tmp_path, monkeypatch) -> None:
    """Those in a run and those at its end, whatever the training has: they are compared."""
    found: dict[str, set[str]] = {"evaluate": set(), "train_step": set()}

    def noted(name: str, real: Any, *given: Any, **more: Any) -> Any:
        found[name].add(torch.get_float32_matmul_precision())
        return real(*given, **more)

    for module, name in ((evaluation, "evaluate"), (loop, "train_step")):
        monkeypatch.setattr(module, name, partial(noted, name, getattr(module, name)))
    before = torch.get_float32_matmul_precision()
    changes = {"training.matmul_precision": "medium"}
    pretrain(small_run(paths, changes), tmp_path / "out", quiet=True)
    assert found == {"evaluate": {"highest"}, "train_step": {"medium"}}
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("line", ["nonsense", '{"step": "one"}'])
def test_a_line_of_the_log_that_is_no_entry_is_named(tmp_path, line) -> None:
    path = tmp_path / "log.jsonl"
    assert read_log(path) == []
    path.write_text(f'{line}\n{{"step": 2}}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"Line 1 of the log .*log\.jsonl is not an entry"):
        read_log(path)
