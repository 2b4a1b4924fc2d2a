"""Held-out perplexity of a biLM, forward, backward and mean, by the full softmax.

    python benchmarks/perplexity.py TEXT [--weights en_sm] [--vocab FILE]

TEXT is raw text, a paragraph a line (.txt, .gz, .xz): tokenized and split as
``python -m spacy elmo tokenize`` does it. A word outside the head's vocabulary counts as <UNK>;
every sentence's end (backward: its start) is predicted too. With ``--vocab`` (one word a line,
most frequent first) the head must have just these words.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import spacy

from spacy_elmo.bilm.find import load_bilm
from spacy_elmo.pipeline.segments import split_text
from spacy_elmo.pretraining.corpus import Block
from spacy_elmo.pretraining.head import load_head
from spacy_elmo.pretraining.perplexity import evaluate
from spacy_elmo.pretraining.shards import read_lines
from spacy_elmo.pretraining.vocab import Vocabulary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--weights", default="en_sm")
    parser.add_argument("--vocab", type=Path)
    arguments = parser.parse_args()

    model = load_bilm(arguments.weights)
    head, vocab = load_head(arguments.weights)
    if arguments.vocab and Vocabulary.read(arguments.vocab).words != vocab.words:
        sys.exit(f"The words of {arguments.vocab} are not those of the head ({len(vocab):,}).")
    block = Block(
        split_text(spacy.blank("en"), read_lines(arguments.text)),
        vocab,
        max_words=2**31,
        to_ids=model.token_encoder.to_ids,
    )
    result = evaluate(model, head, block)
    print(f"{arguments.text}: {result.n_predicted:,} predictions in each direction")
    print(f"vocabulary of {len(vocab):,}, {result.unknown_rate:.2%} <UNK>\n")
    print("| forward | backward | mean |")
    print("|---|---|---|")
    print(f"| {result.forward:.1f} | {result.backward:.1f} | {result.mean:.1f} |")


if __name__ == "__main__":
    main()
