"""`project/scripts/widen.py`: a larger biLM that computes the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.softmax import restrict_head
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.find import load_bilm

from ..pretraining.helpers import make_block, make_config, prose, write_text

SCRIPT = Path(__file__).parents[2] / "project" / "scripts" / "widen.py"


def test_it_predicts_the_same(tmp_path: Path) -> None:
    """Its vectors are those of before, repeated; a new word has a share of <UNK>."""
    text = write_text(tmp_path / "train.txt", prose() * 4)
    pretrain(make_config(text, text, {"vocab.max_size": 20}), tmp_path / "run", quiet=True)
    start, out = tmp_path / "run" / "model-last", tmp_path / "out"
    (old, vocab), small = load_head(start), load_bilm(start)
    (tmp_path / "words.txt").write_text("\n".join([*vocab.words, "nobody"]), encoding="utf-8")
    command = [sys.executable, SCRIPT, start, out, "--train", text, "--words", 30]
    command += ["--vocab", tmp_path / "words.txt", "--dim", 24, "--projection", 20]
    command += ["--filters", 24, "--scale", 2, 4]
    subprocess.run(list(map(str, command)), check=True)
    (new, words), large = load_head(out), load_bilm(out)
    assert (large.config.dim, large.config.projection_dim, large.config.n_filters) == (24, 20, 24)
    sentence = [["The", "bank", "closed", "."]]
    layers, repeated = small.read(sentence)[0][0], large.read(sentence)[0][0]
    factors = torch.tensor([2.0, 4.0, 4.0])[:, None, None]
    for side in range(2):
        units = torch.arange(20) % 8
        expected = (layers * factors)[..., 8 * side + units]
        found = repeated[..., 20 * side : 20 * (side + 1)]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert len(words) == 30 and {"nobody", *vocab.words} <= set(words.words)
    before = evaluate(small, old, make_block(prose(), vocab))
    restricted, same = restrict_head(new, words, vocab.words, "The file")
    after = evaluate(large, restricted, make_block(prose(), same))
    assert after.mean == pytest.approx(before.mean, rel=1e-4)
