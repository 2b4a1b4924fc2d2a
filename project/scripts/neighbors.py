"""The words of a text whose contexts differ most clearly, and the nearest contexts of each.

No list of ambiguous words is needed: of frequent words, those are shown whose contexts the biLM
divides best, by the silhouette of the groups.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import typer
from sizes import thin_out
from wasabi import msg

from spacy_elmo.senses.occurrences import MIN_CONTEXTS, Senses, find_senses
from spacy_elmo.text.readers import blank_pipeline
from spacy_elmo.text.shards import Shards
from spacy_elmo.viz import draw_senses
from spacy_elmo.weights.find import find_weights

WORDS = {"en": ["bank"], "ko": ["말"]}  # 말: horse, speech, end
CANDIDATES, SHOWN = 30, 3  # words whose contexts are read, and that are shown
MOST_CONTEXTS, TYPICAL = 60, 4  # of a word, and of a group in the list
# Of a candidate, in a large text, and in a small one: more frequent words are the grammar's.
OCCURRENCES, SHARES = (60, 20), (0.0001, 0.001)
PART_WORDS = 50_000


def main(run: Path, word: str = "auto", lang: str = "en") -> None:
    """Write RUN/neighbors.md, and RUN/senses.svg for the first word; neither if there is none.

    "auto" words are found in the tokenized text if there is one; else it is one of the language.
    """
    for name in ("neighbors.md", "senses.svg"):
        (run / name).unlink(missing_ok=True)  # of another word, perhaps
    weights = (run / "bilm.txt").read_text(encoding="utf-8").strip()
    text = str(run / "text" / "train.txt")
    words = [each.strip() for each in word.split(",")]
    if word == "auto":
        shards = run / "shards" / "train"
        words = candidates(shards, weights) if shards.exists() else WORDS.get(lang, [])
    found = sorted(read(words, text, weights, lang), key=clearness, reverse=True)[:SHOWN]
    if not found:
        which = f"None of {', '.join(words)} has" if words else "No word of the text has"
        msg.warn("There are no contexts to show", f"{which} enough of them.")
        return
    (run / "neighbors.md").write_text("\n".join(map(describe, found)), encoding="utf-8")
    draw_senses(found[0], output=run / "senses.svg")
    print("\n".join(map(describe, found)))
    msg.good(f"Contexts of {', '.join(each.word for each in found)}", str(run / "neighbors.md"))


def candidates(shards: Path, weights: str) -> list[str]:
    """Frequent words of a tokenized text, evenly spaced: letters alone, no stop words, and in most
    parts of the text, as the names in a novel are not."""
    nlp = blank_pipeline(find_weights(weights))
    counts, parts, seen = Counter[str](), Counter[str](), dict[str, int]()
    n_words = 0
    for sentence in Shards(shards).sentences():
        counts.update(sentence)
        part = n_words // PART_WORDS
        for word in {word.lower() for word in sentence}:
            parts[word] += seen.get(word) != part
            seen[word] = part
        n_words += len(sentence)
    forms = {word.lower(): word for word, _ in reversed(counts.most_common())}
    totals = Counter[str]()
    for word, n in counts.items():
        totals[word.lower()] += n
    least = max(MIN_CONTEXTS, min(OCCURRENCES[0], SHARES[0] * n_words))
    most = max(OCCURRENCES[1], SHARES[1] * n_words)
    words = [
        forms[word]
        for word, n in totals.most_common()
        if least <= n <= most
        and 2 * parts[word] >= n_words / PART_WORDS
        and all(unicodedata.category(letter)[0] in "LM" for letter in word)  # with vowel signs
        and not nlp.vocab[word].is_stop
    ]
    return thin_out(words, CANDIDATES)


def read(words: list[str], text: str, weights: str, lang: str) -> Iterator[Senses]:
    """The contexts of those words that have enough."""
    how = {"weights": weights, "lang": lang, "most_contexts": MOST_CONTEXTS}
    for word in words:
        try:
            yield find_senses(word, text, **how, quiet=True)
        except ValueError as error:  # too few, or not one token
            msg.text(str(error))


def clearness(found: Senses) -> float:
    """The silhouette of the groups; 0 of a single one."""
    return found.silhouette or 0.0 if len(found.groups) > 1 else 0.0


def describe(found: Senses) -> str:
    """The most typical contexts of each group, in Markdown."""
    lines = [f"## {found.word}", ""]
    for group in found.groups:
        keywords = f": {', '.join(group.keywords)}" if group.keywords else ""
        lines.append(f"{len(group.contexts)} contexts{keywords}")
        lines.append("")
        for context in group.contexts[:TYPICAL]:
            left, middle, right = context.text
            lines.append(f"- {left[-60:]}**{middle}**{right[:60]}")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
