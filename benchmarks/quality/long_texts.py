"""What do the first words of a text suffice for? Classes of long texts by `TextCatLinear`.

    python benchmarks/quality/long_texts.py OUT --data DATA [--sets …] [--words 50 100 0]

The texts have 400 words. Of each class, ten are learned from and up to thirty are scored: which of
eleven sources a text is from (`registers`), and which of forty novels (`novels`), other passages of
which were learned. They are read whole or up to a word; so are those that are learned from.
Besides the accuracy, texts a second of one core are printed. OUT is a file of `results.py`.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from downstream import train_for
from results import Results, fingerprint, make_parser
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config, minibatch
from tasks import read_text
from thinc.api import Adam

from spacy_elmo import add_elmo

PART = "long texts"  # of the results
LENGTH, N_TRAIN, N_TEST = 400, 10, 30  # words of a text; texts of a class
N_NOVELS, STEPS, BATCH = 40, 400, 16

Texts = dict[str, list[list[str]]]  # words of the texts of each class


def passages(words: list[str]) -> list[list[str]]:
    """Parts of the same number of words."""
    return [words[i : i + LENGTH] for i in range(0, len(words) - LENGTH + 1, LENGTH)]


def registers(data: Path) -> Texts:
    """The start of each document, by its source."""
    found: Texts = {}
    for file in sorted((data / "lm" / "registers").glob("*/valid.txt.xz")):
        documents = (text.split() for text in read_text(file).split("\n\n"))
        texts = [words[:LENGTH] for words in documents if len(words) >= LENGTH]
        if len(texts) >= 2 * N_TRAIN:
            found[file.parent.name] = texts
    return found


def novels(data: Path) -> Texts:
    """Passages from all of a book, by the book."""
    books = read_text(data / "lm" / "fiction-pd" / "train.txt.xz").split("\n\n")
    parts = [passages(book.split()) for book in books]
    long = [each for each in parts if len(each) >= N_TRAIN + N_TEST]
    return {f"book {i}": each for i, each in enumerate(long[:N_NOVELS])}


SETS: dict[str, Callable[[Path], Texts]] = {"registers": registers, "novels": novels}


def split(nlp: Language, texts: Texts, n_words: int, seed: int) -> tuple[list[Example], ...]:
    """Examples to learn from and to score, another sample for each seed; 0 words: all."""
    parts: tuple[list[Example], list[Example]] = [], []
    for label, each in texts.items():
        chosen = random.Random(seed).sample(each, min(len(each), N_TRAIN + N_TEST))
        for part, words in zip(
            itertools.chain([parts[0]] * N_TRAIN, itertools.repeat(parts[1])), chosen, strict=False
        ):
            doc = nlp.make_doc(" ".join(words))
            doc = doc[: n_words or len(doc)].as_doc()
            gold = Doc(nlp.vocab, words=[token.text for token in doc])
            gold.cats = {name: float(name == label) for name in texts}
            part.append(Example(doc, gold))
    return parts


def measure(data: Path, name: str, n_words: int, seed: int) -> dict[str, float]:
    """Accuracy in percent, and texts a second, the tokenizer left out."""
    fix_random_seed(seed)
    base = init_config(lang="en", pipeline=["textcat"], optimize="efficiency")
    nlp = load_model_from_config(add_elmo(base), auto_fill=True)
    learned, scored = split(nlp, SETS[name](data), n_words, seed)
    nlp.initialize(lambda: learned)
    rng = random.Random(seed)
    batches = (
        (epoch, batch)
        for epoch in itertools.count()
        for batch in minibatch(rng.sample(learned, len(learned)), BATCH)
    )
    optimizer = Adam(0.001, L2=0.01, grad_clip=1.0, L2_is_weight_decay=True, use_averages=True)
    train_for(nlp, optimizer, batches, 0.1, STEPS)
    docs = [example.predicted for example in scored]
    with nlp.use_params(optimizer.averages):
        start = time.process_time()
        said = [max(doc.cats, key=doc.cats.__getitem__) for doc in nlp.pipe(docs)]
        seconds = time.process_time() - start
    right = [example.reference.cats[label] for label, example in zip(said, scored, strict=True)]
    return {"accuracy": 100 * statistics.mean(right), "texts/s": len(docs) / seconds}


def main() -> None:
    parser = make_parser(__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--words", nargs="+", type=int, default=[50, 100, 0], help="0: all")
    options = parser.parse_args()
    results, weights = Results(options.out), fingerprint("en_sm")
    for seed, name, words in itertools.product(options.seeds, options.sets, options.words):
        unit = {"set": name, "words": words or "all", "seed": seed}
        results.get(PART, unit, weights, partial(measure, options.data, name, words, seed))
    results.print_means(PART)


if __name__ == "__main__":
    main()
