"""A text with the surprisal of each word, in the style of displaCy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spacy.tokens import Doc, Span, Token

from .page import FAINT, INK, PAPER, clean
from .picture import Picture

MOST_BITS = 20.0  # darkest
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
    word = ""
    for token in text:
        word += mark_token(token)
        after = token.doc[token.i + 1 : token.i + 2]
        joined = token.is_left_punct or any(t.is_punct for t in after)
        if token.whitespace_ or not joined:
            yield f'<span style="display:inline-block">{word}</span>{token.whitespace_}'
            word = ""
    yield word  # a Span that ends within a word


def mark_token(token: Token) -> str:
    """A token in HTML, with the bits below the word."""
    if token.is_space:
        return " "
    text, bits = clean(token.text), token._.surprisal
    if bits is None:
        return f'<span style="{WORD};color:{FAINT}">{text}<br/><small>–</small></span>'
    style = f"{WORD};{colours(bits / MOST_BITS)}"
    return (
        f'<mark style="{style}" title="{bits:.2f} bits">{text}<br/><small>{bits:.1f}</small></mark>'
    )


def colours(share: float) -> str:
    """A blue background from light (0) to dark (1 and more), and text that has contrast with it."""
    return f"background:rgb(8 48 107 / {min(share, 1):.0%});color:{PAPER if share > 0.62 else INK}"
