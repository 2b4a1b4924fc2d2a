"""What a text tells about its language: bytes of a letter, casing, spaces, ends of sentences."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spacy.util import get_lang_class

from spacy_elmo.text.readers import BY_RULES

FACTS = "language.json"  # in the folder of a run
# Scripts that are written without spaces between words, as Unicode names their letters.
WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
MOST_WORDS = 100  # of a sentence, which `elmo pretrain` splits where it is longer
USUAL_BYTES = 50  # of a word with its two marks: what `elmo init-config` writes
READ_WHOLE = 0.9999  # of the words
STUCK_DASH = re.compile(r"(?<!\S)-+(?=[^\W\d_]|[¿¡«])")  # -No, said who writes a hyphen for a dash
MOST_STUCK = 0.002  # of the words
MOST_UNSEEN = 0.01  # of the letters of labelled sentences: rare names and signs have them


class Facts(NamedTuple):
    """Of some sentences.

    Attributes:
        words: in a sentence, on average.
        long: share of the sentences with more than `MOST_WORDS`.
        letter_bytes: of a letter in UTF-8, on average.
        cased: share of the letters that have two cases.
        upper: share of these that are capitals.
        unspaced: share of the letters whose script has no spaces between words.
        word_bytes: enough for all words but the longest of 10,000.
    """

    words: float
    long: float
    letter_bytes: float
    cased: float
    upper: float
    unspaced: float
    word_bytes: int

    @property
    def max_characters_per_token(self) -> int:
        """The setting of the biLM: `word_bytes` and two marks, in tens; at least the usual."""
        return max(USUAL_BYTES, 10 * math.ceil((self.word_bytes + 2) / 10))


def read_facts(sentences: Iterable[list[str]]) -> Facts:
    """Facts of tokenized sentences.

    Raises:
        ValueError: there are none, or no letters in them.
    """
    lengths, words = Counter[int](), Counter[str]()
    for sentence in sentences:
        lengths[len(sentence)] += 1
        words.update(sentence)
    letters, sizes = Counter[str](), Counter[int]()
    for word, n in words.items():
        sizes[len(word.encode())] += n
        for letter in filter(str.isalpha, word):
            letters[letter] += n
    total = letters.total()
    if not total:
        raise ValueError("There are no letters in the text.")
    cased = {each: n for each, n in letters.items() if each.lower() != each.upper()}

    def share(found: Iterable[str]) -> float:
        return sum(letters[each] for each in found) / total

    return Facts(
        words=words.total() / lengths.total(),
        long=sum(n for length, n in lengths.items() if length > MOST_WORDS) / lengths.total(),
        letter_bytes=sum(n * len(each.encode()) for each, n in letters.items()) / total,
        cased=share(cased),
        upper=share(c for c in cased if c.isupper()) / (share(cased) or 1.0),
        unspaced=share(c for c in letters if unicodedata.name(c, "").startswith(WITHOUT_SPACES)),
        word_bytes=quantile(sizes, READ_WHOLE),
    )


def stuck_dashes(paragraphs: Iterable[str]) -> Iterator[str]:
    """A line, if there are dashes that a tokenizer takes for a part of the next word."""
    words = found = 0
    for paragraph in paragraphs:
        words += len(paragraph.split())
        found += len(STUCK_DASH.findall(paragraph))
    if found > MOST_STUCK * words:
        yield (
            f"{found / words:.1%} of the words have a hyphen in front: where it is a dash, write — "
            f"or put a space behind it"
        )


def unseen_letters(words: Iterable[str], text: Iterable[str]) -> Iterator[str]:
    """A line, if the labelled sentences are not written as the text is: in another script, with
    capitals or accents that it lacks.

    Args:
        words: of the labelled sentences.
        text: words of the text.
    """
    known = set().union(*text)
    letters = Counter(letter for word in words for letter in word if letter.isalpha())
    unseen = Counter({letter: n for letter, n in letters.items() if letter not in known})
    if unseen.total() > MOST_UNSEEN * letters.total():
        yield (
            f"{unseen.total() / letters.total():.0%} of the letters of the labelled sentences are "
            f"not in the text, such as {' '.join(each for each, _ in unseen.most_common(5))}: "
            f"write both in one script, with the same capitals and accents"
        )


def quantile(sizes: Counter[int], share: float) -> int:
    """The smallest size that such a share of all are not above."""
    left = share * sizes.total()
    for size in sorted(sizes):
        left -= sizes[size]
        if left <= 1e-6:
            break
    return size


def remarks(facts: Facts, lang: str, tokenizer: str) -> Iterator[str]:
    """What is worth knowing before a training, a line for each.

    Raises:
        ValueError: the tokenizer finds words by the spaces between them, and there are none.
    """
    yield (
        f"{facts.words:.0f} words in a sentence, {facts.letter_bytes:.1f} bytes in a letter; words "
        f"are read up to {facts.max_characters_per_token - 2} bytes"
    )
    if facts.unspaced > 0.3:
        what = f"{facts.unspaced:.0%} of the letters are of a script without spaces between words"
        if tokenizer == BY_RULES:
            own = get_lang_class(lang).Defaults.config.get("nlp", {}).get("tokenizer", {})
            name = own.get("@tokenizers", BY_RULES)
            instead = f"name the language's own, {name}, with --vars.tokenizer"
            if name == BY_RULES:
                instead = "put spaces between the words of the text first"
            raise ValueError(f"{what}, and {tokenizer} splits at spaces: {instead}.")
        yield f"{what}: what a word is, {tokenizer} decides"
    if facts.cased > 0.5 and facts.upper < 0.005:
        yield "There are no capitals in the text: lower-case what the biLM is to read later, too"
    if facts.long > 0.1:
        yield (
            f"{facts.long:.0%} of the sentences have more than {MOST_WORDS} words: spaCy's "
            f"sentencizer knows few of their ends. Put each sentence on a line of its own"
        )
