"""Clusters: Ray and Spark on this machine, and the page that describes them."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spacy_elmo
from spacy_elmo import Encoder
from spacy_elmo.encoding import job

from ..docs.pages import blocks, run_blocks
from ..pipeline.helpers import TOLERANCE, max_difference

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")


@pytest.fixture
def run_section(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Runs a section of the page; returns the names in its snippets."""
    return lambda title: run_blocks(
        blocks(PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]), monkeypatch
    )


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines = ["The bank lent us the money.", "", "They sat on the bank."]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return lines


def flatten(vectors: Any) -> np.ndarray:
    return np.concatenate([np.array(list(row), "float32").reshape(-1, 256) for row in vectors])


def test_page_on_pipelines(texts, run_section) -> None:
    vectors = run_section("In a spaCy pipeline")["vectors"]
    expected = Encoder()(texts)
    assert max_difference(vectors, expected) <= TOLERANCE


def test_page_on_one_machine(texts, run_section) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    names = run_section("On one machine")
    expected = Encoder(level="documents")(["She sang.", "It rained."])
    for frame in (names["means"], names["joined"]):
        assert max_difference([flatten(frame["vectors"])], [expected]) <= TOLERANCE
        assert list(frame["text"]) == ["She sang.", "It rained."]
    assert list(names["joined"]["label"]) == ["art", "weather"]
    vectors = flatten(pandas.read_parquet("vectors.parquet")["vectors"])
    assert max_difference([vectors], [np.concatenate(Encoder()(texts))]) <= TOLERANCE


@pytest.mark.slow
def test_page_on_ray(texts, run_section) -> None:
    ray = pytest.importorskip("ray")
    parquet = pytest.importorskip("pyarrow.parquet")
    try:
        row = run_section("On several machines, with Ray")["row"]
    finally:
        ray.shutdown()
    [expected] = Encoder(layers="top")(texts[:1])
    assert max_difference([flatten([row["vectors"]])], [expected]) <= TOLERANCE
    table = parquet.read_table("ray.parquet")
    assert table["id"].to_pylist() == [0, 1, 2]
    means = Encoder(level="documents")(texts)
    assert max_difference([flatten(table["vectors"].to_pylist())], [means]) <= TOLERANCE


@pytest.mark.slow
def test_page_on_spark(texts, run_section, monkeypatch) -> None:
    pytest.importorskip("pyspark")
    parquet = pytest.importorskip("pyarrow.parquet")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    names = run_section("On several machines, with Spark")
    names["spark"].stop()
    table = parquet.read_table("spark").sort_by("id")
    expected = Encoder(level="documents")([texts[0], ""])
    assert max_difference([np.array(table["vectors"].to_pylist())], [expected]) <= TOLERANCE


@pytest.mark.slow
def test_ray_with_a_machine_that_is_killed(tmp_path, weights, monkeypatch) -> None:
    """Two worker nodes; one is killed when the first files are written."""
    ray = pytest.importorskip("ray")
    parquet = pytest.importorskip("pyarrow.parquet")
    from ray.cluster_utils import Cluster

    lines = [" ".join(f"w{i * j % 97}" for j in range(i % 6)) for i in range(8000)]
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out.parquet"
    corpus.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(job, "CHUNK_TOKENS", 500)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    left: list[int] = []  # parts written when one was killed

    def kill() -> None:
        while not (written := list(tmp_path.glob("out.parquet.parts/*.parquet"))):
            time.sleep(0.01)
        left.append(len(written))
        cluster.remove_node(nodes[1], allow_graceful=False)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        ray.init(cluster.address, log_to_driver=False)
        ray_settings = {"ray": cluster.address, "n_process": 2}
        summary = spacy_elmo.encode(corpus, out, weights=weights, **ray_settings)
        thread.join(timeout=60)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert left[0] < len(list(out.glob("*.parquet"))) / 2
    whole = tmp_path / "whole.parquet"
    assert spacy_elmo.encode(corpus, whole, weights=weights) == summary
    assert parquet.read_table(out).equals(parquet.read_table(whole))
