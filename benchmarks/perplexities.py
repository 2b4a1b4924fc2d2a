"""How well does the biLM predict text of each register, compared with counting n-grams?

    python benchmarks/perplexities.py DATA [--weights en_sm] [--words 20000] [--train TEXT …]

Prints the held-out perplexity of each register: of a unigram model, of a Kneser-Ney trigram
(`kneser_ney.py`), both from left to right, and of the biLM in both directions and as their mean.
All of them predict the same words and the ends of the same sentences, over the same vocabulary:
the words of DATA/eval_vocab.txt (or --vocab) that the head has, too; all others are <UNK>. The
unigram and the trigram model count the first --train-words of each text given with --train, by
default of the training texts in DATA/lm except MASC's, which no shipped biLM has read. A directory
of shards, which `elmo tokenize` writes, counts as one text and is read much faster.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from kneser_ney import START, KneserNey, with_boundaries

from spacy_elmo.bilm.base_weights import Weights, read_words
from spacy_elmo.bilm.find_weights import find_weights
from spacy_elmo.cli.perplexity import read_text
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.restricted_head import restrict_head

NOT_ENGLISH = ("kowiki", "nsmc-reviews")
TOKENIZED = ("wikitext-2",)  # in another way, with <unk> in it
NEVER_TRAINED_ON = ("masc",)


def texts(data: Path, split: str) -> dict[str, Path]:
    """The English texts of a split, by their names."""
    files = sorted(
        [*data.glob(f"lm/*/{split}.txt.xz"), *data.glob(f"lm/registers/*/{split}.txt.xz")]
    )
    found = {file.parent.name: file for file in files}
    return {name: file for name, file in found.items() if name not in (*NOT_ENGLISH, *TOKENIZED)}


def first_words(sentences: Iterable[list[str]], n_words: int) -> Iterator[list[str]]:
    """The sentences up to the one with the nth word; all of them if n is 0."""
    n_read = 0
    for sentence in sentences:
        yield sentence
        n_read += len(sentence)
        if n_words and n_read >= n_words:
            return


class Unigrams:
    """Relative frequencies, each count plus one; see `KneserNey` for the arguments."""

    def __init__(self, tokens: np.ndarray, n_words: int):
        counts = np.bincount(tokens[tokens != START], minlength=n_words) + 1.0
        self.logs = np.log(counts / counts[1:].sum())

    def log_probabilities(self, tokens: np.ndarray) -> np.ndarray:
        return self.logs[tokens[tokens != START]]


def perplexity(model: Unigrams | KneserNey, tokens: np.ndarray) -> float:
    return float(np.exp(-model.log_probabilities(tokens).mean()))


def read(weights: Weights, text: Path, n_words: int) -> Iterator[list[str]]:
    return first_words(read_text(weights, text, False, None), n_words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--weights", default="en_sm", help="with a head (default: en_sm)")
    parser.add_argument("--vocab", type=Path, help="default: DATA/eval_vocab.txt")
    parser.add_argument("--registers", nargs="+", help="default: all in DATA/lm")
    parser.add_argument("--words", type=int, default=20_000, help="of each register; 0: all")
    parser.add_argument("--train", type=Path, nargs="+", help="texts or directories of shards")
    parser.add_argument("--train-words", type=int, default=200_000, help="of each; 0: all")
    arguments = parser.parse_args()
    train = arguments.train or [
        file
        for name, file in texts(arguments.data, "train").items()
        if name not in NEVER_TRAINED_ON
    ]
    heldout = texts(arguments.data, "valid")
    if unknown := set(arguments.registers or ()) - set(heldout):
        parser.error(f"no such registers in {arguments.data}/lm: {', '.join(sorted(unknown))}")

    weights = find_weights(arguments.weights)
    head, words = load_head(weights)
    common = read_words(arguments.vocab or arguments.data / "eval_vocab.txt")
    head, words = restrict_head(
        head, words, (w for w in common if w in words.ids), "The vocabulary"
    )
    bilm = weights.load()

    def ids(sentences: Iterable[list[str]]) -> np.ndarray:
        return with_boundaries([words[word] for word in sentence] for sentence in sentences)

    parts = [ids(read(weights, text, arguments.train_words)) for text in train]
    tokens = np.concatenate(parts)
    unigrams, trigrams = Unigrams(tokens, len(words)), KneserNey(tokens, len(words))
    n_read = int((tokens != START).sum())
    print(f"{arguments.weights}, {len(words):,} words; counted: {n_read:,} words and ends\n")
    columns = ("words", "`<UNK>`", "unigrams", "Kneser-Ney", "forward", "backward", "mean")
    print("| register |", " | ".join(columns), "|\n|---|" + "---|" * len(columns))
    for name in arguments.registers or heldout:
        sentences = [s for s in read(weights, heldout[name], arguments.words) if s]
        block = EncodedSentences(sentences, words, None, bilm.token_encoder.to_ids)
        found = evaluate(bilm, head, block)
        counted = [perplexity(model, ids(sentences)) for model in (unigrams, trigrams)]
        values = (*counted, found.forward, found.backward, found.mean)
        cells = " | ".join(f"{value:.1f}" for value in values)
        print(f"| {name} | {found.n_words:,} | {found.unknown_rate:.2%} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
