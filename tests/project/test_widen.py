"""`project/scripts/widen.py`: a larger biLM that computes the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.vocabulary import UNKNOWN
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.find import load_bilm

from ..pretraining.helpers import log_probabilities, make_config, prose, write_text

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
    same = [words[word] for word in vocab.words]
    others = [i for i in range(len(words)) if i not in same]
    for side in range(2):
        before = np.exp(log_probabilities(small, old, sentence[0])[side])
        after = np.exp(log_probabilities(large, new, sentence[0])[side])
        after[:, UNKNOWN] += after[:, others].sum(axis=1)
        np.testing.assert_allclose(after[:, same], before, rtol=1e-3)
