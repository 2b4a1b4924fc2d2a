"""Is the nearest other sentence with a word one in which it has the same sense?

A file of sentences, such as `korean_senses.txt`, has a line ``# WORD: SENSE`` before those of each
sense. A token of each sentence is the word, or begins with it: in Korean, its particles are part of
it.
Measures the share of sentences, in percent, for which the answer is yes: by the vectors that `elmo
senses` groups, by `token.similarity`, by the cosine of each layer, and for a random choice.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from spacy.language import Language

from spacy_elmo.cli.demo import accuracy, read_sentences
from spacy_elmo.pipeline.similarity import unit
from spacy_elmo.senses.clusters import center
from spacy_elmo.senses.occurrences import make_context
from spacy_elmo.text.segments import sentence_bounds

KOREAN = Path(__file__).with_name("korean_senses.txt")


def accuracies(nlp: Language, word: str, rows: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Whether the answer is yes for each sentence, by the name of the vectors that are compared."""
    vectors, layers, tokens = [], [], []
    for _, sentence in rows:
        doc = nlp(sentence)
        exact = [token.i for token in doc if token.text == word]
        i = (exact or [token.i for token in doc if token.text.startswith(word)])[0]
        [words] = sentence_bounds(doc, "doc").tokens
        vectors.append(make_context(doc, words, i).vector)
        layers.append(unit(doc._.elmo_layers[:, i]))
        tokens.append(doc[i])
    centered = center(np.stack(vectors))
    compared = {
        "`elmo senses`": centered @ centered.T,
        "`token.similarity`": np.array([[a.similarity(b) for b in tokens] for a in tokens]),
        **{f"layer {i}": layer @ layer.T for i, layer in enumerate(np.stack(layers, axis=1))},
        "random": np.zeros((len(rows), len(rows))),
    }
    senses = [sense for sense, _ in rows]
    return {name: accuracy(senses, cosines) for name, cosines in compared.items()}


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
