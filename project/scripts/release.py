"""A finished pretraining run to weights that ship: rounded, with a head of fewer words or none.

    python scripts/release.py RUN OUT --train SHARDS [--words 20000] [--steps 300]
    python scripts/release.py runs/de-full/pretrained weights/de_sm --train SHARDS --lang de

Takes ``model-best`` of a run of ``python -m spacy elmo pretrain``. The head is restricted to its
most frequent words; the row of <UNK>, which now also stands for the words left out, is refitted on
the training text, and all else stays as it is. The log and the config (without its paths) go along.
The statistics of the run go along, too. A card, licence, meta.json, lists of texts and the logs
of earlier stages of the training that are in OUT already stay there.

--scale 2 2 multiplies the token vectors and the outputs of the LSTM layers, and divides the weights
that read them. The language model stays the same, but how well components learn from the vectors
depends on their scale: choose it on dev sets.

With --lang there is no head, unless --words is given; statistics are of the whole training text, as
with --scale; the card is written from the log of the run and the facts in weights/languages.json.
Without a head, all files together must have at most 8 MB.

--int8 rounds the weights of the gates to eight bits; all others have half precision.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from confection import Config
from torch.nn import functional as F

from spacy_elmo.bilm.int8 import round_gates
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import IndexedSentences
from spacy_elmo.lm.forward import hidden_states
from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.softmax import SoftmaxHead
from spacy_elmo.lm.vocabulary import UNKNOWN, Vocabulary
from spacy_elmo.pretraining.config import (
    CONFIG,
    Paths,
    PretrainConfig,
    TrainingSettings,
    read_config,
)
from spacy_elmo.pretraining.corpus import CorpusPosition, TrainingCorpus
from spacy_elmo.text.shards import Shards
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import DOCUMENTS, META, STATISTICS, Card
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.statistics import compute_statistics

TEXTS = ("pages.txt.xz", "books.txt", "documents.txt.xz", "heldout.txt")
STAGES = [f"{n}_training.{end}" for n in ("first", "second") for end in ("cfg", "jsonl")]
COPIED = (*TEXTS, *STAGES)
MOST_MB = 8.0  # without a head
WEIGHTS = Path(__file__).parents[1] / "weights"
FACTS = WEIGHTS / "languages.json"
CARD, TERMS = WEIGHTS / "README.template", WEIGHTS / "LICENSE.template"
HALF, INT8 = "half precision", "its gates in int8, all else in half precision"
AUTHOR, LICENSE = "the spacy-elmo developers", "CC BY-SA 4.0"


def fit_unknown(
    run: Path, shards: list[Path], n_words: int, steps: int
) -> tuple[SoftmaxHead, Vocabulary]:
    """The head over the first words, with a row of <UNK> that stands for all others."""
    config = read_config(run / CONFIG)
    model = load_bilm(run / "model-best").requires_grad_(False)
    head, vocab = load_head(run / "model-best")
    vocab = Vocabulary(vocab.words[:n_words])
    weight, bias = head.weight.detach()[:n_words], head.bias.detach()[:n_words]
    row = torch.cat([weight[UNKNOWN], bias[UNKNOWN, None] + 1.0]).requires_grad_(True)
    settings = replace(
        config,
        corpus=replace(config.corpus, buffer_words=1_000_000),
        training=TrainingSettings(batch_words=1024, seed=1),
    )
    corpus = TrainingCorpus(Shards(shards), vocab, model.char_cnn.to_ids, settings)
    optimizer = torch.optim.Adam([row], lr=0.02)
    batches = corpus.batches(CorpusPosition())
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.02 * (1 - step / steps)
        with torch.no_grad():
            hidden, targets, _ = hidden_states(model, next(batches)[0].shares[0])
            logits = F.linear(hidden, weight, bias)
            logits[:, UNKNOWN] = -torch.inf
            known = torch.logsumexp(logits, dim=1)
        # Only the choice between <UNK> and any known word depends on the row.
        loss = F.binary_cross_entropy_with_logits(
            hidden @ row[:-1] + row[-1] - known, (targets == UNKNOWN).float()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    small = SoftmaxHead(n_words, model.config.projection_dim)
    weight, bias = weight.clone(), bias.clone()
    weight[UNKNOWN], bias[UNKNOWN] = row.detach()[:-1], row.detach()[-1]
    small.load_state_dict({"weight": weight.half().float(), "bias": bias.half().float()})
    return small, vocab


@torch.no_grad()
def rescale(model: BiLM, head: SoftmaxHead | None, tokens: float, outputs: float) -> None:
    """Multiply the token vectors of a biLM, and the outputs of its LSTM layers, in place.

    The language model stays the same: what reads them is divided. Powers of two lose nothing.

    Raises:
        ValueError: the biLM clips its states, or has no projections; nothing is changed then.
    """
    projection = getattr(model.char_cnn, "projection", None)
    clips = model.config.cell_clip is not None or model.config.proj_clip is not None
    if clips or projection is None or any(layer.weight_hr is None for layer in model.lstm):
        raise ValueError("--scale is for a biLM with projections and without clips.")
    for parameter in projection.parameters():
        parameter *= tokens
    for number, layer in enumerate(model.lstm):
        layer.weight_ih /= outputs if number else tokens
        layer.weight_hh /= outputs
        layer.weight_hr *= outputs
    if head is not None:
        head.weight /= outputs


def make_card(
    lang: str,
    run: Path,
    config: PretrainConfig,
    log: list[dict[str, Any]],
    minutes: float | None,
    precision: str,
) -> Card:
    """The card of a language's weights, from the facts about its texts and the log of its run.

    Without the minutes of one core, it has those of the log, by the clock on the wall.

    Raises:
        ValueError: there are no facts about the language, or the run has not finished.
    """
    languages = json.loads(FACTS.read_text(encoding="utf-8"))
    if lang not in languages:
        raise ValueError(f"{FACTS} has no '{lang}'; known are {', '.join(languages)}.")
    facts, name, shape = languages[lang], f"{lang}_sm", config.model
    sources = facts["sources"]
    lists = {file: what for each in sources for file, what in each.get("listed", {}).items()}
    results = [entry["mean"] for entry in log if entry.get("model") == "model-best"]
    if not results:
        raise ValueError(f"The run '{run}' has not finished; go on with `elmo pretrain --resume`.")
    last = [entry for entry in log if "loss" in entry][-1]
    tokenizer = find_weights(run / "model-best").card().meta.get("tokenizer", "spacy.Tokenizer.v1")
    meta = {
        "name": name,
        "lang": lang,
        "tokenizer": tokenizer,
        "version": "0.1.0",
        "description": (
            f"{facts['language']} biLM of spacy-elmo: two LSTM layers of {shape.dim} cells, "
            f"projection {shape.projection_dim}"
        ),
        "author": AUTHOR,
        "license": LICENSE,
        "sources": [
            {"name": f"spacy-elmo {name} biLM", "author": AUTHOR, "license": LICENSE},
            *({key: each[key] for key in ("name", "url", "author", "license")} for each in sources),
        ],
    }
    readme = CARD.read_text(encoding="utf-8").format(
        **{key: meta[key] for key in ("name", "lang", "tokenizer", "license")},
        language=facts["language"],
        dim=shape.dim,
        projection=shape.projection_dim,
        width=shape.width,
        parameters=sum(p.numel() for p in load_bilm(run / "model-best").parameters()) / 1e6,
        texts="\n".join(
            f"| [{each['name']}]({each['url']}) | {each['words']} | {each['license']} |"
            for each in sources
        ),
        lists="".join(f"| `{file}` | {what} |\n" for file, what in lists.items()),
        precision=precision,
        note=facts["note"],
        steps=last["step"],
        words_read=last["words"],
        time=(
            f", in {last['seconds'] / 60:.0f} minutes"
            if minutes is None
            else f": from raw text on, {minutes:.0f} minutes of one core"
        ),
        perplexity=results[-1],
        n_words=len((run / "vocab.txt").read_text(encoding="utf-8").splitlines()),
    )
    texts = "\n".join(
        f"- {each['name']}, {each['url']}{listed_in(each)} ({each['license']})" for each in sources
    )
    terms = TERMS.read_text(encoding="utf-8").format(name=name, license=LICENSE, texts=texts)
    return Card(meta, {"README.md": readme, "LICENSE": terms})


def listed_in(source: dict[str, Any]) -> str:
    return f", listed in {' and '.join(source['listed'])}" if "listed" in source else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=Path, required=True, nargs="+", help="training shards")
    parser.add_argument("--words", type=int, help="words of the head; 0: none (default: 20,000)")
    parser.add_argument("--lang", help="of weights/languages.json, for the card")
    parser.add_argument("--minutes", type=float, help="of one core from raw text on, for the card")
    parser.add_argument("--int8", action="store_true", help="round the weights of the gates")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--scale", type=float, nargs=2, default=(1.0, 1.0))
    arguments = parser.parse_args()
    run, out, lang = arguments.run, arguments.out, arguments.lang
    if arguments.minutes is not None and not lang:
        parser.error("--minutes are for the card, which needs --lang")
    n_words = (0 if lang else 20_000) if arguments.words is None else arguments.words
    shards, is_scaled = Shards(arguments.train).files(), tuple(arguments.scale) != (1.0, 1.0)
    config = read_config(run / CONFIG)
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    precision = INT8 if arguments.int8 else HALF
    card = make_card(lang, run, config, entries, arguments.minutes, precision) if lang else None
    with atomic_directory(out) as directory:
        bilm, head = load_bilm(run / "model-best"), None
        if n_words:
            head, vocab = fit_unknown(run, shards, n_words, arguments.steps)
        if is_scaled:
            rescale(bilm, head, *arguments.scale)
        if arguments.int8:
            round_gates(bilm)
        save_bilm(bilm, directory, card, half=True)
        if head is not None:
            save_head(head, vocab, directory, half=True)
        statistics = find_weights(run / "model-best").statistics()
        if lang or is_scaled:
            model = load_bilm(directory)
            sentences = map(model.char_cnn.to_ids.read, Shards(shards).sentences())
            indexed = IndexedSentences(sentences, config.corpus.max_words)
            statistics = compute_statistics(model, indexed)
        if statistics is not None:
            (directory / STATISTICS).write_bytes(statistics.to_bytes())
        Config(replace(config, paths=Paths()).to_dict()).to_disk(directory / "training.cfg")
        lines = [json.dumps(entry) + "\n" for entry in entries]
        (directory / "training.jsonl").write_text("".join(lines), encoding="utf-8")
        for name in COPIED if lang else (*COPIED, *DOCUMENTS, META):
            if (out / name).exists():
                shutil.copy2(out / name, directory / name)
        sizes = {file.name: file.stat().st_size / 1e6 for file in sorted(directory.iterdir())}
        for name, size in sizes.items():
            print(f"  {name:22} {size:6.2f} MB")
        if not n_words and sum(sizes.values()) > MOST_MB:
            raise ValueError(
                f"The weights have {sum(sizes.values()):.1f} MB, more than {MOST_MB}. Train a "
                f"smaller biLM (`elmo init-config --size hour`)."
            )
    print(f"{out}: {sum(sizes.values()):.2f} MB")


if __name__ == "__main__":
    main()
