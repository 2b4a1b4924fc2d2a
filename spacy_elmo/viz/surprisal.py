"""A text with the surprisal of each word, in the style of displaCy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spacy.tokens import Doc, Span, Token

from .page import FAINT, INK, PAPER, clean
from .picture import Picture

MOST_BITS = 20.0  # darkest
LIGHT, DARK = (247, 251, 255), (8, 48, 107)  # ends of the scale of `shade`
WORD = "display:inline-block;padding:.15em .3em;margin:.1em 0;border-radius:.35em;line-height:1.3"


def draw_surprisal(texts: Sequence[Doc | Span]) -> Picture:
    """The picture of ``token._.surprisal``: the darker a word, the less it was expected.

    Args:
        texts: Docs or Spans that the component elmo_surprisal has read.

    Raises:
        ValueError: it has not read any of them.
    """
    if not any(token.has_extension("surprisal") and token._.surprisal is not None
               for text in texts for token in text):  # fmt: skip
        raise ValueError(
            "These texts have no surprisal: run them through a pipeline with the component "
            "elmo_surprisal, as in nlp.add_pipe('elmo_surprisal')."
        )
    caption = (
        f"Surprisal of each word in bits, below it: light words were expected, dark ones were not "
        f"({MOST_BITS:.0f} bits and more). Words outside the vocabulary have none."
    )
    lines = [
        f'<p dir="auto" style="line-height:2.6">{"".join(mark_words(text))}</p>' for text in texts
    ]
    return Picture("Surprisal", caption, text="\n".join(lines))


def mark_words(text: Doc | Span) -> Iterator[str]:
    """Each word in HTML, on one line with its punctuation if the line is long enough."""
    word: list[str] = []
    for token in text:
        word.append(mark_token(token))
        after = token.doc[token.i + 1 : token.i + 2]
        joined = token.is_left_punct or any(t.is_punct for t in after)
        if token.whitespace_ or not joined:
            yield f'<span style="display:inline-block">{"".join(word)}</span>{token.whitespace_}'
            word = []
    yield "".join(word)  # a Span that ends within a word


def mark_token(token: Token) -> str:
    """A token in HTML, with the bits below the word."""
    text = clean(token.text)
    bits = token._.surprisal
    if token.is_space:
        return " "
    if bits is None:
        return f'<span style="{WORD};color:{FAINT}">{text}<br/><small>–</small></span>'
    share = bits / MOST_BITS
    style = f"{WORD};background:{shade(share)};color:{text_on(share)}"
    return (
        f'<mark style="{style}" title="{bits:.2f} bits">{text}<br/><small>{bits:.1f}</small></mark>'
    )


def shade(share: float) -> str:
    """A blue from light (0) to dark (1), whose lightness falls evenly."""
    share = min(max(share, 0.0), 1.0)
    return "#" + "".join(
        f"{round(a + (b - a) * share):02x}" for a, b in zip(LIGHT, DARK, strict=True)
    )


def text_on(share: float) -> str:
    """The colour of text on `shade`: the one with more contrast."""
    return PAPER if share > 0.62 else INK
