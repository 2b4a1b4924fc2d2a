"""`project/scripts/release.py`: what a run of pretraining ships."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.vocabulary import UNKNOWN
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.find import find_weights, load_bilm

from ..pretraining.helpers import make_block, make_config, prose, write_text

SCRIPT = Path(__file__).parents[2] / "project" / "scripts" / "release.py"


def test_a_run_in_half_precision_with_a_smaller_head(tmp_path: Path) -> None:
    train = write_text(tmp_path / "train.txt", prose() * 4)
    run, out = tmp_path / "run", tmp_path / "out"
    pretrain(make_config(train, write_text(tmp_path / "dev.txt", prose())), run, quiet=True)
    out.mkdir()
    (out / "README.md").write_text("A card.\n")
    perplexities = []
    for steps in (0, 100):
        command = [sys.executable, SCRIPT, run, out, "--train", train, "--words", 20]
        subprocess.run([str(part) for part in [*command, "--steps", steps]], check=True)
        small, vocab = load_head(out)
        perplexities.append(evaluate(load_bilm(out), small, make_block(prose(), vocab)).mean)

    assert find_weights(out).card().documents["README.md"] == "A card.\n"
    assert find_weights(out).statistics() is not None
    tensors = load_file(out / "weights.safetensors").values()
    assert {tensor.dtype for tensor in tensors} == {torch.float16}
    large, words = load_head(run / "model-best")
    assert vocab.words == words.words[:20]
    known = [i for i in range(20) if i != UNKNOWN]
    assert torch.equal(small.weight[known], large.weight[known].half().float())
    # The refitted row of <UNK> stands for the words that were removed, too.
    assert perplexities[1] < perplexities[0]
    assert (out / "training.cfg").exists() and (out / "training.jsonl").exists()
