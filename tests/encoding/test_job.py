"""Several processes, and jobs that are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from click.testing import Result

import spacy_elmo
from spacy_elmo.encoding import job, row_files

from ..cli import helpers
from ..pipeline.helpers import write_weights

PART = 200  # rows
N_ROWS = 20 * PART - 7


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows for twenty parts."""
    monkeypatch.setattr(row_files, "MAX_ROWS", PART)
    path = tmp_path / "many.txt"
    lines = [" ".join(f"w{i * j % 97}" for j in range(i % 6)) for i in range(N_ROWS)]
    path.write_text("\n".join(lines) + "\n")
    return path


def content(out: Path) -> list[bytes]:
    """Of all files of a finished job."""
    assert not Path(f"{out}.parts").exists()
    if out.is_dir():
        return [file.read_bytes() for file in sorted(out.iterdir())]
    files = [out, out.with_suffix(".offsets.npy"), out.with_suffix(".tokens.jsonl")]
    return [file.read_bytes() for file in files]


def run(*arguments: Any) -> Result:
    return helpers.run("encode", *arguments)


def refused(said: str, *arguments: Any) -> bool:
    """Tell if a job ends with an error that says this."""
    return said in helpers.fail("encode", *arguments)


def test_the_number_of_processes_changes_nothing(many, tmp_path, weights) -> None:
    one, two = tmp_path / "one.npy", tmp_path / "two.npy"
    summary = spacy_elmo.encode(many, one, weights=weights)
    assert spacy_elmo.encode(many, two, weights=weights, n_process=2) == summary
    assert content(one) == content(two)


def test_processes_beside_threads(text, tmp_path) -> None:
    """A fork has none of the threads with which its parent has loaded weights of the usual size."""
    command = [sys.executable, "-m", "spacy", "elmo", "encode", text, tmp_path / "out.npy", "-n", 2]
    variables = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([*map(str, command)], env=variables, check=True, timeout=200)


def test_resume(text, tmp_path, weights) -> None:
    out = tmp_path / "out.npy"
    # Without anything to resume, from the beginning; then again, without work.
    assert run(text, out, "-w", weights, "--resume", "-q").output == ""
    before = (content(out), out.stat().st_mtime_ns)
    data = json.loads(run(text, out, "-w", weights, "--resume", "--json").stdout)
    assert data == {"output": str(out), "rows": 6, "vectors": len(np.load(out))}
    # Another job is not continued, nor is a file replaced that is not a result.
    for name in ("a.npy", "c.tokens.jsonl", "d.npy.json"):
        (tmp_path / name).write_text("{}")
    for name, argument, said in [
        ("out.npy", "--quiet", "is complete. Use --force"),
        ("out.npy", "--layers=all", "has layers = 'mix'"),
        ("a.npy", "--resume", "Already there: "),
        ("a.npy", "--force", "Already there: "),
        ("c.npy", "--force", "c.tokens.jsonl', which is not the result"),
        ("d.npy", "--force", "d.npy.json', which is not the result"),
    ]:
        resume = ["--resume"] * argument.startswith("--layers")
        assert refused(said, text, tmp_path / name, "-w", weights, argument, *resume)
    assert (tmp_path / "c.tokens.jsonl").read_text() == "{}"
    text.write_text("Another text\n")
    assert refused("has corpus = ", text, out, "-w", weights, "--resume")
    assert (content(out), out.stat().st_mtime_ns) == before
    assert run(text, out, "-w", weights, "--force").exit_code == 0
    assert len(np.load(out)) == 2


@pytest.mark.parametrize("name", ["out.npy", "out.parquet"])
def test_what_was_there_stays_until_the_end(name, text, tmp_path, weights) -> None:
    """Also if the new job is forced and fails; and nothing of the user's is removed."""
    out, broken = tmp_path / name, tmp_path / "broken.jsonl"
    run(text, out, "-w", weights)
    before = content(out)
    broken.write_text('{"text": "one"}\nno JSON\n')
    assert refused("Line 2", broken, out, "-w", weights, "--force")
    assert content(out) == before
    if out.is_dir():
        (out / "notes.txt").write_text("mine")  # refused before the corpus is read
        assert refused("notes.txt', which is not", broken, out, "-w", weights, "--force")
        assert (out / "notes.txt").read_text() == "mine"
        (out / "notes.txt").unlink()
        assert content(out) == before
    assert run(text, out, "-w", weights, "--force").exit_code == 0
    assert content(out) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_result_that_a_link_names(text, tmp_path, weights) -> None:
    """Moved to a larger disk, say, and its description with it or not."""
    out, moved = tmp_path / "out.parquet", tmp_path / "large" / "out.parquet"
    run(text, out, "-w", weights)
    moved.parent.mkdir()
    out.rename(moved)
    out.symlink_to(moved)
    before = content(moved)
    assert refused("Already there: ", text, out, "-w", weights, "--force")
    assert content(moved) == before
    Path(f"{out}.json").rename(f"{moved}.json")
    assert run(text, out, "-w", weights, "--force", "--layers=top").exit_code == 0
    assert out.is_symlink() and content(moved) != before


@pytest.mark.parametrize("name", ["out.npy", "out.offsets.npy", "out.tokens.jsonl", "out.parquet"])
def test_a_file_that_somebody_has_removed_is_written_again(name, text, tmp_path, weights) -> None:
    out = tmp_path / f"out{Path(name).suffix.replace('.jsonl', '.npy')}"
    run(text, out, "-w", weights)
    before = content(out)
    for again in ("--resume", "--force"):
        shutil.rmtree(out) if out.is_dir() else (tmp_path / name).unlink()
        assert refused("is not complete. Use --resume", text, out, "-w", weights)
        assert refused("has layers = 'mix'", text, out, "-w", weights, "--resume", "--layers=top")
        assert run(text, out, "-w", weights, again).exit_code == 0
        assert content(out) == before


@pytest.fixture
def broken_off(text: Path, tmp_path: Path, weights: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The output of a job that has all parts and was killed before it joined them."""
    out = tmp_path / "folder" / "out.npy"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(job, "join_parts", interrupt)
        spacy_elmo.encode(text, out, weights=weights)
    assert not out.exists()
    return out


def interrupt(*arguments: Any) -> None:
    raise KeyboardInterrupt


def test_a_job_that_was_not_joined(broken_off, text, weights) -> None:
    assert refused("is not complete. Use --resume", text, broken_off, "-w", weights)
    assert refused("has level = ", text, broken_off, "-w", weights, "--resume", "--level=documents")
    spacy_elmo.encode(text, broken_off, weights=weights, resume=True)
    result = content(broken_off)
    # And one that was killed while it removed its parts.
    parts = Path(f"{broken_off}.parts")
    parts.mkdir()
    (parts / "part-00000000.parquet").touch()
    assert spacy_elmo.encode(text, broken_off, weights=weights, resume=True).n_rows == 6
    assert not parts.exists()
    assert content(broken_off) == result


def test_a_job_that_was_not_renamed(text, tmp_path, weights, monkeypatch) -> None:
    """Killed in the last step, when the old output is gone."""
    out, replace = tmp_path / "out.parquet", os.replace
    run(text, out, "-w", weights, "--layers=top")
    expected = content(out)
    run(text, out, "-w", weights, "--force")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", lambda *to: interrupt() if to[1] == out else replace(*to))
        spacy_elmo.encode(text, out, weights=weights, layers="top", force=True)
    assert refused("is not complete. Use --resume", text, out, "-w", weights)
    assert refused("has layers = 'top'", text, out, "-w", weights, "--resume")
    assert run(text, out, "-w", weights, "--resume", "--layers=top").exit_code == 0
    assert content(out) == expected


def test_a_forced_job_begins_anew(broken_off, text, tmp_path) -> None:
    """With the weights that are on the disk now."""
    path, found = tmp_path / "own", []
    for seed in (1, 2):
        write_weights(path, seed=seed)
        settings = {"weights": str(path), "level": "documents", "force": True}
        assert spacy_elmo.encode(text, broken_off, **settings) == (6, 6)
        found.append(np.load(broken_off))
    assert np.abs(found[0] - found[1]).max() > 0.1


def test_the_second_job_of_an_output_is_refused(many, tmp_path, weights, monkeypatch) -> None:
    out, encode_part = tmp_path / "out.parquet", job.encode_part

    def then_another(*arguments: Any) -> Any:
        assert refused("Another process is writing", many, out, "-w", weights, "--resume")
        return encode_part(*arguments)

    monkeypatch.setattr(job, "encode_part", then_another)
    assert spacy_elmo.encode(many, out, weights=weights).n_rows == N_ROWS
    assert not Path(f"{out}.parts").exists()


def test_an_output_in_its_corpus_is_refused(text, weights) -> None:
    """Its own output would be text."""
    folder = text.parent
    (folder / "link").symlink_to(folder)
    for corpus, out in [
        (folder, folder / "out.npy"),
        (folder, folder / "link" / "out.parquet"),
        (folder / "link", folder / "out.npy"),
        (f"{folder}/*", folder / "out.npy"),
        (f"{folder}/*.jsonl", folder / "out.npy"),
    ]:
        (folder / "b.jsonl").write_text('{"text": "A"}\n')
        with pytest.raises(ValueError, match="would be a part of the corpus"):
            spacy_elmo.encode(corpus, out, weights=weights)
    assert not list(folder.glob("out*"))
    assert spacy_elmo.encode(f"{folder}/*.txt", folder / "out.npy", weights=weights).n_rows == 6


@pytest.mark.slow
def test_a_pipeline_with_sentences_resumes(text, tmp_path, weights) -> None:
    """And not one whose tokenizer has changed."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"model": {"weights": weights}})
    nlp.to_disk(tmp_path / "nlp")
    out, arguments = tmp_path / "out.npy", ("-p", tmp_path / "nlp", "--resume")
    for seed in "12":  # of the order of sets
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-m", "spacy", "elmo", "encode", text, out, *arguments]
        subprocess.run(list(map(str, command)), check=True, env=environment)
    nlp.tokenizer.add_special_case("bank", [{"ORTH": "ba"}, {"ORTH": "nk"}])
    nlp.to_disk(tmp_path / "nlp")
    assert refused("has checksum = ", text, out, *arguments)


def test_an_error_leaves_the_parts(many, tmp_path, weights) -> None:
    out = tmp_path / "out.npy"
    good = many.read_bytes()
    many.write_bytes(good[:-9] + b"\xff" * 9)
    for n_process in (1, 2):
        assert refused("UTF-8", many, out, "-w", weights, "-n", n_process, "--resume")
        assert len(list(Path(f"{out}.parts").glob("part-*"))) > 2
    many.write_bytes(good)
    part = next(Path(f"{out}.parts").glob("part-*"))
    sound = part.read_bytes()
    part.write_bytes(sound[: len(sound) // 2])
    for said in (part.name, "which can be removed"):
        assert refused(said, many, out, "-w", weights, "--resume") and not out.exists()
    part.unlink()
    assert run(many, out, "-w", weights, "--resume").exit_code == 0
    spacy_elmo.encode(many, tmp_path / "whole.npy", weights=weights)
    assert content(out) == content(tmp_path / "whole.npy")


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_process_that_is_killed(many, tmp_path, weights, monkeypatch) -> None:
    def die(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(job.formats, "write_part", die)
    with pytest.raises(ValueError, match="`elmo encode` with --resume"):
        spacy_elmo.encode(many, tmp_path / "out.npy", weights=weights, n_process=2)


def test_failures(text, tmp_path, weights, monkeypatch) -> None:
    """Nothing is left of them."""
    before = sorted(tmp_path.iterdir())
    assert refused("drop --n-process", text, tmp_path / "out.npy", "--gpu-id", 0, "-n", 2)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refused("spacy-elmo[parquet]", text, tmp_path / "out.parquet")
    assert sorted(tmp_path.iterdir()) == before
