"""`project/scripts/release.py`: what a run of pretraining ships."""

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

from ..pretraining.helpers import make_block, make_config, prose, write_text

PROJECT = Path(__file__).parents[2] / "project"
SCRIPT = PROJECT / "scripts" / "release.py"
WEIGHTS = sorted(path.name for path in (PROJECT / "weights").glob("*_sm"))


@pytest.mark.slow
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


@pytest.mark.slow
def test_another_scale(tmp_path: Path) -> None:
    """Of the vectors alone: the language model is the same."""
    train = write_text(tmp_path / "train.txt", prose() * 4)
    run, out = tmp_path / "run", tmp_path / "out"
    pretrain(make_config(train, write_text(tmp_path / "dev.txt", prose())), run, quiet=True)
    found = []
    for scale in (("1", "1"), ("2", "4")):
        command = [sys.executable, str(SCRIPT), str(run), str(out), "--train", str(train)]
        subprocess.run([*command, "--words", "20", "--steps", "0", "--scale", *scale], check=True)
        (head, vocab), model = load_head(out), load_bilm(out)
        mean = evaluate(model, head, make_block(prose(), vocab)).mean
        layers = model.read([["bank", "of", "the", "river"]])[0][0]
        statistics = find_weights(out).statistics()
        assert statistics is not None
        found.append((mean, layers, torch.from_numpy(statistics.std)))
    (mean, layers, std), (same, scaled, larger) = found
    factors = torch.tensor([2.0] + [4.0] * (len(layers) - 1))
    assert same == pytest.approx(mean, rel=1e-5)
    torch.testing.assert_close(scaled, layers * factors[:, None, None], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(larger, std * factors[:, None], rtol=1e-3, atol=1e-3)


def test_the_weights_of_a_language(tmp_path: Path) -> None:
    """Without a head, its gates in int8, with a card from the facts, and at most 8 MB."""
    train = write_text(tmp_path / "train.txt", prose() * 4)
    run, out = tmp_path / "run", tmp_path / "de_sm"
    pretrain(make_config(train, write_text(tmp_path / "dev.txt", prose())), run, quiet=True)

    def release(lang: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, SCRIPT, run, out, "--train", train, "--lang", lang]
        command += ["--minutes", "57", "--int8"]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    out.mkdir()
    (out / "README.md").write_text("An earlier card.\n")
    assert release("de").returncode == 0
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
    assert f"known are {known}" in release("tlh").stderr
    (out / "books.txt").write_bytes(bytes(8_000_000))  # it is kept
    (out / "README.md").write_text("As it was.\n")
    result = release("de")
    assert result.returncode and "MB, more than 8.0" in result.stderr
    assert (out / "README.md").read_text() == "As it was.\n"  # nothing was written


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_ready(name: str) -> None:
    """With a card, small, gates in int8; a word's vector depends on its sentence."""
    path = PROJECT / "weights" / name
    weights = find_weights(path)
    card = weights.card()
    assert (card.meta["name"], card.meta["lang"]) == (name, name.removesuffix("_sm"))
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
    words = [
        "The",
        "committee",
        "of",
        "the",
        "town",
        "will",
        "meet",
        "on",
        "Monday",
        "to",
        "vote",
        "on",
        "the",
        "new",
        "budget",
        ".",
    ]
    small, medium = (LanguageModel.load(name).surprisal(words) for name in ("en_sm", path))
    assert sum(medium.forward) < sum(small.forward)
