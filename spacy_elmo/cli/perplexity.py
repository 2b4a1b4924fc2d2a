"""``python -m spacy elmo perplexity``: measures how well a biLM predicts a text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from . import options

if TYPE_CHECKING:
    from ..weights.native import Weights


@options.app.command("perplexity")
def perplexity_cli(
    text: Annotated[Path, typer.Argument(help="Raw text, a file or directory, in any format of `elmo tokenize`, or its output", metavar="TEXT")],
    weights: options.WeightsName = "en_sm",
    tokenized: Annotated[bool, typer.Option("--tokenized", "-t", help="TEXT has one sentence per line, words separated by spaces")] = False,
    column: options.Column = None,
    lang: options.TokenizerLang = None,
    gpu_id: options.GpuId = -1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """
    Measure the perplexity of a held-out text.

    The command prints the forward, backward and mean perplexity of the full softmax. Raw text is
    tokenized and split into sentences as by `elmo tokenize`. Each sentence starts from the initial
    state of the weights. Words outside the vocabulary count as <UNK>; the end of each sentence
    (backward: its start) is predicted too. A smaller vocabulary gives a lower perplexity, so
    compare values for the same text and vocabulary only.
    """
    from ..lm.encoded_sentences import EncodedSentences
    from ..lm.head import load_head
    from ..lm.perplexity import evaluate
    from ..util.device import find_device
    from ..util.progress import ProgressBar
    from ..weights.find import find_weights

    with options.report_errors("Cannot measure the perplexity", as_json=as_json):
        device = find_device("cpu" if gpu_id < 0 else f"cuda:{gpu_id}")
        source = find_weights(weights)
        sentences = options.count_words(read_text(source, text, tokenized, lang, column), quiet)
        head, words = load_head(source)
        model = source.load()
        block = EncodedSentences(sentences, words, None, model.char_cnn.to_ids)
        if not len(block.lengths):
            raise ValueError(f"There are no words in the text '{text}'.")
        n_words = int(block.lengths.sum()) - 2 * len(block.lengths)
        with ProgressBar("words", n_words, quiet=quiet) as progress:
            model, head = model.to(device), head.to(device)
            result = evaluate(model, head, block, on_batch=progress.update)
    data = {
        "weights": source.where, "text": str(text), "forward": result.forward,
        "backward": result.backward, "mean": result.mean, "sentences": len(block.lengths),
        "words": result.n_words, "unknown": result.n_unknown,
        "unknown_rate": result.unknown_rate, "vocabulary": len(words),
    }  # fmt: skip
    if as_json:
        options.print_json(data)
        return
    rows = [
        (name.replace("_", " "), f"{value:,.4g}" if isinstance(value, float) else f"{value:,}")
        for name, value in data.items()
        if not isinstance(value, str)
    ]
    msg.table(rows, aligns=("l", "r"))


def read_text(
    weights: Weights, text: Path, tokenized: bool, lang: str | None, column: str | None = None
) -> Iterator[list[str]]:
    """Read the sentences of a raw or tokenized text."""
    from ..text.files import META, find_files, is_shard
    from ..text.readers import blank_pipeline, tokenize_files
    from ..text.shards import Shards

    if tokenized or (text / META).is_file() or is_shard(text):
        return Shards(text).sentences()
    nlp = blank_pipeline(weights, lang)
    return tokenize_files(nlp, find_files(text), n_process=1, column=column)
