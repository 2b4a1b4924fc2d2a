"""``python -m spacy elmo perplexity``: how well a biLM predicts a text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from wasabi import msg

if TYPE_CHECKING:
    from ..bilm.layout import Weights


def perplexity_cli(
    # fmt: off
    weights: str = typer.Argument(
        ...,
        help="Name, directory or zip of weights that have a language-model head",
        metavar="NAME",
    ),
    text: Path = typer.Argument(
        ...,
        help="Raw text, as `elmo tokenize` takes it, or a directory of shards, as it writes them",
        metavar="TEXT",
    ),
    tokenized: bool = typer.Option(
        False,
        "--tokenized",
        "-t",
        help="TEXT is a file of one sentence a line, words separated by spaces",
    ),
    vocab: Path | None = typer.Option(
        None,
        "--vocab",
        help="Words that count as known, one a line; each must be a word of the head. Its other words become <UNK>, and their probabilities are added up. So heads with different vocabularies can be compared: give both the words that both have",
        dir_okay=False,
    ),
    lang: str | None = typer.Option(
        None, "--lang", "-l", help="Language whose tokenizer is used, if not that of the weights"
    ),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU ID or -1 for CPU"),
    as_json: bool = typer.Option(False, "--json", "-j", help="Print JSON"),
    # fmt: on
) -> None:
    """
    Perplexity of a held-out text, forward, backward and mean, by the full softmax.

    Raw text is tokenized and split into sentences as `elmo tokenize` does it. Each sentence is
    read from the state that the weights start from. A word outside the vocabulary counts as <UNK>;
    every sentence's end (backward: its start) is predicted too. The smaller a vocabulary, the lower
    the perplexity: compare only those of the same text and the same --vocab.
    """
    try:
        data = measure(weights, text, tokenized, vocab, lang, gpu_id)
    except (ValueError, ImportError, OSError) as error:
        msg.fail("Cannot measure the perplexity", str(error), exits=1)
    if as_json:
        print(json.dumps(data, indent=2, ensure_ascii=False))
        return
    unknown = f"{data['unknown']:,} ({data['unknown_rate']:.2%})"
    rows = [
        *((name, f"{data[name]:.2f}") for name in ("forward", "backward", "mean")),
        *((name, f"{data[name]:,}") for name in ("sentences", "words")),
        ("<UNK> among them", unknown),
        ("vocabulary", f"{data['vocabulary']:,}"),
    ]
    msg.table(rows, aligns=("l", "r"))


def measure(
    setting: str, text: Path, tokenized: bool, vocab: Path | None, lang: str | None, gpu_id: int
) -> dict[str, Any]:
    """What is printed, as plain JSON types.

    Raises:
        ValueError: the weights have no head or cannot be read; or the text or the vocabulary
            cannot be read, are empty, or do not fit.
        ImportError: the tokenizer of the language is not there.
    """
    from ..bilm.find import find_weights
    from ..bilm.layout import read_words
    from ..lm.batches import EncodedSentences
    from ..lm.head import load_head
    from ..lm.perplexity import evaluate
    from ..lm.restricted_head import restrict_head
    from ..pretraining.run.machine import find_device

    device = find_device("cpu" if gpu_id < 0 else f"cuda:{gpu_id}")
    weights = find_weights(setting)
    head, words = load_head(weights)
    if vocab is not None:
        known = [word for word in read_words(vocab) if word]
        head, words = restrict_head(head, words, known, f"The vocabulary {vocab}")
    model = weights.load()
    block = EncodedSentences.of_whole(sentences(weights, text, tokenized, lang), words, model)
    if not len(block.lengths):
        raise ValueError(f"There are no words in the text '{text}'.")
    result = evaluate(model.to(device), head.to(device), block)
    return {
        "weights": weights.where,
        "text": str(text),
        "forward": result.forward,
        "backward": result.backward,
        "mean": result.mean,
        "sentences": len(block.lengths),
        "words": result.n_words,
        "unknown": result.n_unknown,
        "unknown_rate": result.unknown_rate,
        "vocabulary": len(words),
    }


def sentences(
    weights: Weights, text: Path, tokenized: bool, lang: str | None
) -> Iterator[list[str]]:
    """The sentences of a text in any of the forms that it may have."""
    from ..pretraining.data.shards import find_shards, read_sentences
    from ..readers import read_sentences_of
    from .language import blank_pipeline

    if not text.exists():
        raise ValueError(f"There is no text '{text}'.")
    if tokenized or text.is_dir():
        for shard in find_shards(text):
            yield from read_sentences(shard)
        return
    yield from read_sentences_of(blank_pipeline(weights, lang), [text], 1)
