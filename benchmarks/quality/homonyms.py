"""Is the nearest other sentence with a word one in which it has the same sense?

    python benchmarks/quality/homonyms.py [SENTENCES] [--weights project/weights/ko_sm]

SENTENCES, by default `korean_senses.txt`, has a line ``# WORD: SENSE`` before the sentences of each
sense. A token of each sentence is the word, or begins with it: in Korean, its particles are part
of it.
Prints the share of sentences, in percent, for which the answer is yes: by the vectors that `elmo
senses` groups, by `token.similarity`, by the cosine of each layer, and for a random choice.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from similarity import make_nlp
from spacy.language import Language

from spacy_elmo.cli.demo import accuracy, layer_cosines, read_sentences
from spacy_elmo.senses.occurrences import make_context, similarities
from spacy_elmo.text.segments import sentence_bounds

KOREAN = Path(__file__).with_name("korean_senses.txt")
WEIGHTS = Path(__file__).parents[2] / "project" / "weights" / "ko_sm"


def accuracies(nlp: Language, word: str, rows: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Whether the answer is yes for each sentence, by the name of the vectors that are compared."""
    contexts, tokens = [], []
    for sense, sentence in rows:
        doc = nlp(sentence)
        exact = [token.i for token in doc if token.text == word]
        i = (exact or [token.i for token in doc if token.text.startswith(word)])[0]
        [words] = sentence_bounds(doc, "doc").tokens
        contexts.append(make_context(doc, words, i, sense))
        tokens.append(doc[i])
    layers = {f"layer {i}": layer_cosines(contexts, i) for i in range(len(contexts[0].layers))}
    compared = {
        "`elmo senses`": similarities(contexts),
        "`token.similarity`": np.array([[a.similarity(b) for b in tokens] for a in tokens]),
        **layers,
        "random": np.zeros((len(rows), len(rows))),
    }
    return {name: accuracy(contexts, cosines) for name, cosines in compared.items()}


def measure(nlp: Language, sentences: Path) -> dict[str, tuple[int, dict[str, float]]]:
    """Of each word and of all: the number of sentences, and the share in percent for which the
    answer is yes, by the vectors that are compared."""
    rows = read_sentences(sentences)
    found = {
        word: accuracies(nlp, word, [(sense, text) for each, sense, text in rows if each == word])
        for word in dict.fromkeys(word for word, _, _ in rows)
    }
    names = list(next(iter(found.values())))
    found["all"] = {name: np.concatenate([each[name] for each in found.values()]) for name in names}
    return {
        word: (len(each["random"]), {name: 100 * float(each[name].mean()) for name in names})
        for word, each in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sentences", type=Path, nargs="?", default=KOREAN)
    parser.add_argument("--weights", default=str(WEIGHTS), help="with statistics (default: ko_sm)")
    arguments = parser.parse_args()
    found = measure(make_nlp(arguments.weights), arguments.sentences)
    names = found["all"][1]
    print("| |", " | ".join(names), "|\n|---|" + "---|" * len(names))
    for word, (n, shares) in found.items():
        cells = " | ".join(f"{share:.0f}" for share in shares.values())
        print(f"| {word}, {n} sentences | {cells} |")


if __name__ == "__main__":
    main()
