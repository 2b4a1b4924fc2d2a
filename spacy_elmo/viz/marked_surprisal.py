"""A text with the surprisal of each word, in the style of displaCy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spacy.tokens import Doc, Span, Token

from ..util.files import write_text
from .figure import check_output
from .html import FAINT, INK, PAPER, Html, clean, html_page

MOST_BITS = 20.0  # darkest
CAPTION = (
    f"Surprisal of each word in bits: light words were expected, dark ones were not "
    f"({MOST_BITS:.0f} bits and more). Words outside the vocabulary have none."
)


def mark_surprisal(
    texts: Doc | Span | Iterable[Doc | Span], *, output: str | Path | None = None
) -> Html:
    """Mark how unexpected each word is: the darker a word, the less it was expected.

    Args:
        texts: Docs or Spans that the component elmo_surprisal has read.
        output: an .html file to write, too.

    Returns:
        HTML, a paragraph for each text.

    Raises:
        ValueError: no text has a surprisal, or the file is no .html.
    """
    texts = [texts] if isinstance(texts, (Doc, Span)) else list(texts)
    if not any(token.has_extension("surprisal") and token._.surprisal is not None
               for text in texts for token in text):  # fmt: skip
        raise ValueError(
            "These texts have no surprisal: run them through a pipeline with the component "
            "elmo_surprisal, as in nlp.add_pipe('elmo_surprisal')."
        )
    lines = [
        f'<p dir="auto" style="line-height:2">{"".join(map(mark_token, text))}</p>'
        for text in texts
    ]
    html = Html(f"<div>\n<p>{CAPTION}</p>\n" + "\n".join(lines) + "\n</div>")
    if output is not None:
        if check_output(output).suffix.lower() != ".html":
            raise ValueError(f"Marked text is written to an .html file, not to '{output}'.")
        write_text(Path(output), html_page("Surprisal", html))
    return html


def mark_token(token: Token) -> str:
    """A token in HTML, with its bits behind the word."""
    text, bits = clean(token.text), token._.surprisal
    if bits is None:
        return f'<span style="color:{FAINT}">{text}</span>{token.whitespace_}'
    style = f"padding:.2em .3em;border-radius:.35em;{colours(bits / MOST_BITS)}"
    mark = f'<mark style="{style}" title="{bits:.2f} bits">{text}<sub>{bits:.1f}</sub></mark>'
    return mark + token.whitespace_


def colours(share: float) -> str:
    """A blue background from light (0) to dark (1 and more), and text that has contrast with it."""
    return f"background:rgb(8 48 107 / {min(share, 1):.0%});color:{PAPER if share > 0.62 else INK}"
