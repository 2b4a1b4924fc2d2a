"""``python -m spacy elmo demo``: see contextual vectors and the language model at work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from . import options

MAX_CHARACTERS = 100_000  # of the user's text


def demo_cli(
    text: Annotated[str | None, typer.Option("--text", "-t", help="Your own text; ___ marks a blank to fill")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A text file of your own: .txt (UTF-8) or .jsonl, either also .gz, .xz or .zst")] = None,
    weights: options.BiLMName = "en_sm",
    lang: options.TokenizerLang = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="HTML page to write, too: the senses of a word, its occurrences compared, surprisal", dir_okay=False)] = None,
) -> None:  # fmt: skip
    """
    See contextual vectors and the language model at work.

    Without a text of your own, the demo reads built-in English sentences with ambiguous words: it
    compares the vectors of a word in different sentences, and fills blanks. With --text or --file,
    it groups the contexts of words that occur more than once in your text, and fills its blanks
    (___).
    """
    with options.report_errors("Cannot show the demo"):
        own = _own_text(text, file)
        from ..lm.language_model import LanguageModel
        from ..text.readers import blank_pipeline
        from ..util.files import write_text
        from ..viz.picture import check_output
        from ..weights.find import find_weights
        from .demo_contexts import built_in_contexts, text_contexts
        from .demo_page import make_page
        from .demo_views import show_built_in, show_text

        if output is not None and check_output(output).suffix.lower() != ".html":
            raise ValueError(f"The page is written to an .html file, not to '{output}'.")
        chosen = find_weights(weights)
        nlp = blank_pipeline(chosen, lang, default="en")
        if own is None and nlp.lang != "en":
            raise ValueError(
                f"The built-in sentences are English, but the language of the weights '{weights}' "
                f"is '{nlp.lang}'. Give a text of your own with --text or --file."
            )
        nlp.add_pipe("elmo", config={"store": ["layers"], "model": {"weights": weights}})
        lm = LanguageModel.load(chosen) if chosen.has_head() else None
        if lm is not None and output is not None:
            nlp.add_pipe("elmo_surprisal", config={"weights": weights})
        docs, found = built_in_contexts(nlp) if own is None else text_contexts(nlp, own)
    show_built_in(nlp, lm, found) if own is None else show_text(nlp, lm, own, found)
    if output is not None:
        with options.report_errors("Cannot write the page"):
            write_text(output, make_page(nlp, docs, found))
        msg.good("Pictures of it", str(output.resolve()))


def _own_text(text: str | None, file: Path | None) -> str | None:
    """The user's text, None if there is none.

    Raises:
        ValueError: it is given twice, is empty, or cannot be read.
    """
    from ..text.texts import paragraphs_in

    if file is not None:
        if text is not None:
            raise ValueError("Give --text or --file, not both.")
        text = "\n".join(paragraphs_in(file))
    if text is not None and not text.strip():
        raise ValueError("The text is empty; give a sentence or more.")
    if text is not None and len(text) > MAX_CHARACTERS:
        msg.warn(f"Only the first {MAX_CHARACTERS:,} characters are read.")
        text = text[:MAX_CHARACTERS]
    return text
