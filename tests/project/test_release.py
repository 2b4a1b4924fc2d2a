"""What a run of pretraining ships: `project/scripts/release.py` and `widen.py`, and the weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from safetensors.torch import load_file
from spacy.tokens import Doc

from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.language_model import LanguageModel
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.vocabulary import UNKNOWN
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.find import find_weights, load_bilm

from ..pretraining.helpers import log_probabilities, make_block, make_config, prose, write_text

PROJECT = Path(__file__).parents[2] / "project"
SCRIPTS = PROJECT / "scripts"
WEIGHTS = sorted(path.name for path in (PROJECT / "weights").glob("*_sm"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, in the folder of its text."""
    folder = tmp_path_factory.mktemp("release")
    train = write_text(folder / "train.txt", prose() * 4)
    config = make_config(train, write_text(folder / "dev.txt", prose()), {"vocab.max_size": 40})
    pretrain(config, folder / "run", quiet=True)
    return folder / "run"


def release(run: Path, out: Path, *options: object) -> subprocess.CompletedProcess[str]:
    return call("release", run, out, "--train", run.with_name("train.txt"), *options)


def call(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPTS / f"{script}.py", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


@pytest.mark.slow
def test_a_run_in_half_precision_with_a_smaller_head(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "README.md").write_text("A card.\n")
    perplexities = []
    for steps in (0, 100):
        assert release(run, out, "--words", 20, "--steps", steps).returncode == 0
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


def test_the_weights_of_a_language(run: Path, tmp_path: Path) -> None:
    """Without a head, its gates in int8, with a card from the facts, and at most 8 MB."""
    out, options = tmp_path / "de_sm", ("--minutes", 57, "--int8", "--lang")
    out.mkdir()
    (out / "README.md").write_text("An earlier card.\n")
    assert release(run, out, *options, "de").returncode == 0
    weights = find_weights(out)
    assert not weights.has_head() and weights.load().config.int8
    statistics = weights.statistics()
    assert statistics is not None and "bank" in statistics.frequencies
    card = weights.card()
    assert (card.meta["name"], card.meta["lang"]) == ("de_sm", "de")
    assert "ELTeC-deu" in json.dumps(card.meta["sources"])
    assert all("ELTeC-deu" in card.documents[name] for name in ("README.md", "LICENSE"))
    assert "a small German biLM" in card.documents["README.md"]
    assert "its gates in int8" in card.documents["README.md"]
    assert "from raw text on, 57 minutes of one core" in card.documents["README.md"]
    assert {"name", "author", "license"} <= set(card.meta["sources"][1]) <= {"url", *card.meta}

    known = "cs, de, es, fr, hu, it, ja, ko, pl, pt, ro, sl, sr, sv, uk"
    assert f"known are {known}" in release(run, out, *options, "tlh").stderr
    (out / "books.txt").write_bytes(bytes(8_000_000))  # it is kept
    (out / "README.md").write_text("As it was.\n")
    result = release(run, out, *options, "de")
    assert result.returncode and "MB, more than 8.0" in result.stderr
    assert (out / "README.md").read_text() == "As it was.\n"  # nothing was written


def test_a_larger_biLM_predicts_the_same(run: Path, tmp_path: Path) -> None:
    """Its vectors are those of before, repeated; a new word has a share of <UNK>."""
    start, out = run / "model-last", tmp_path / "out"
    (old, vocab), small = load_head(start), load_bilm(start)
    (tmp_path / "words.txt").write_text("\n".join([*vocab.words, "nobody"]), encoding="utf-8")
    options = ["--train", run.with_name("train.txt"), "--vocab", tmp_path / "words.txt"]
    options += ["--words", 50, "--dim", 24, "--projection", 20, "--filters", 24]
    assert call("widen", start, out, *options, "--scale", 2, 4).returncode == 0
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
    assert len(words) == 50 and {"nobody", *vocab.words} <= set(words.words)
    same = [words[word] for word in vocab.words]
    others = [i for i in range(len(words)) if i not in same]
    for side in range(2):
        before = np.exp(log_probabilities(small, old, sentence[0])[side])
        after = np.exp(log_probabilities(large, new, sentence[0])[side])
        after[:, UNKNOWN] += after[:, others].sum(axis=1)
        np.testing.assert_allclose(after[:, same], before, rtol=1e-3)


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_ready(name: str) -> None:
    """With a card, small, gates in int8; a word's vector depends on its sentence."""
    path = PROJECT / "weights" / name
    weights = find_weights(path)
    card = weights.card()
    assert (card.meta["name"], card.meta["lang"]) == (name, name.removesuffix("_sm"))
    assert card.meta["license"] == "CC BY-SA 4.0"
    assert len(card.meta["sources"]) > 1 and card.documents.keys() >= {"README.md", "LICENSE"}
    tensors = load_file(path / "weights.safetensors")
    gates = {key for key, tensor in tensors.items() if tensor.dtype == torch.int8}
    scales = {f"{key}_scale" for key in gates}
    assert {tensors[key].dtype for key in tensors.keys() - gates - scales} == {torch.float16}
    assert weights.config().int8 and gates
    assert sum(file.stat().st_size for file in path.iterdir()) <= 5e6
    assert not weights.has_head()
    facts = json.loads((PROJECT / "weights" / "languages.json").read_text(encoding="utf-8"))
    found = facts[card.meta["lang"]]
    readme, terms = card.documents["README.md"], card.documents["LICENSE"]
    assert found["note"] in readme
    for source in found["sources"]:
        listed = list(source.get("listed", {}))
        assert all((path / file).exists() and f"| `{file}` |" in readme for file in listed)
        lists = f", listed in {listed[0]}" if listed else ""
        assert f"- {source['name']}, {source['url']}{lists} ({source['license']})" in terms
    # By words: spaCy's Japanese tokenizer is an extra, which the tests do without.
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"model": {"weights": str(path)}})
    statistics = weights.statistics()
    assert statistics is not None
    word, *others = [each for each in statistics.frequencies if each.isalpha()][:6]
    before, after = (nlp(Doc(nlp.vocab, [word, *rest])) for rest in (others, others[::-1]))
    assert np.abs(before.tensor[0] - after.tensor[0]).max() > 1e-3


def test_the_medium_bilm() -> None:
    """It fits into 26 MB without its head, and predicts text better than the small one."""
    path = PROJECT / "weights" / "en_md"
    card = find_weights(path).card()
    assert card.meta["name"] == "en_md" and {"README.md", "LICENSE"} <= card.documents.keys()
    assert (path / "weights.safetensors").stat().st_size <= 26e6
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"weights": str(path)}})
    doc = nlp("A word depends on its sentence.")
    assert doc.tensor.shape == (7, 512) and np.isfinite(doc.tensor).all()
    text = "The committee of the town will meet on Monday to vote on the new budget."
    words = [token.text for token in nlp.make_doc(text)]
    small, medium = (LanguageModel.load(name).surprisal(words) for name in ("en_sm", path))
    assert sum(medium.forward) < sum(small.forward)
