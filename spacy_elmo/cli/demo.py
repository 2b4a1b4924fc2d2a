"""``python -m spacy elmo demo``: see contextual vectors and the language model at work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import BiLMName, Compiled, Precision, TokenizerLang, report_errors

if TYPE_CHECKING:
    from .demo_screen import Screen

MAX_CHARACTERS = 100_000  # of the user's text


def demo_cli(
    text: Annotated[str | None, typer.Option("--text", "-t", help="Your own text; ___ marks a blank to fill")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A text file of your own: .txt (UTF-8) or .jsonl, either also .gz, .xz or .zst")] = None,
    weights: BiLMName = "en_sm",
    lang: TokenizerLang = None,
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Number of nearest contexts to show")] = 3,
    all_words: Annotated[bool, typer.Option("--all", "-a", help="Show every word of the demo, not just the first few")] = False,
    precision: Precision = "float32",
    compiled: Compiled = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="HTML page to write, too: the senses of a word, similar sentences, surprisal", dir_okay=False)] = None,
) -> None:  # fmt: skip
    """
    See contextual vectors and the language model at work.

    Without a text of your own, the demo reads built-in English sentences with ambiguous words: it
    compares the vectors of a word in different sentences, and fills blanks. With --text or --file,
    it groups the contexts of words that occur more than once in your text, and fills its blanks
    (___).
    """
    from .demo_screen import Screen

    screen = Screen()
    with report_errors("Cannot read the text", screen.msg):
        own = _own_text(screen, text, file)
    with report_errors("Cannot write the page", screen.msg):
        if output is not None:
            _check_page(output)
    with report_errors(f"Cannot load the weights '{weights}'", screen.msg):
        from ..bilm.find_weights import find_weights
        from ..lm.language_model import LanguageModel
        from ..readers import blank_pipeline

        found = find_weights(weights)
        nlp = blank_pipeline(found, lang, default="en")
        model = {"weights": weights, "precision": precision, "compiled": compiled}
        nlp.add_pipe("elmo", config={"store_layers": True, "model": model})
        lm = LanguageModel.load(found, precision, compiled) if found.has_head() else None
        nlp("")  # loads the weights
    from .demo_views import show_built_in, show_text

    if own is not None:
        show_text(screen, nlp, lm, own, n)
    elif nlp.lang == "en":
        show_built_in(screen, nlp, lm, n, all_words)
    else:
        screen.msg.fail(
            f"The built-in sentences are English, but the language of '{weights}' is '{nlp.lang}'.",
            "Give a text of your own with --text or --file.",
            exits=1,
        )
    if output is not None:
        from ..bilm.files import write_text
        from .demo_page import make_page

        if lm is not None:
            nlp.add_pipe("elmo_surprisal", config={"weights": weights})
        write_text(output, make_page(nlp, own))
        screen.line()
        screen.msg.good("Pictures of it", str(output.resolve()))


def _check_page(file: Path) -> None:
    """Check a page to write, before the work begins.

    Raises:
        ValueError: it is no .html file, or its folder is missing.
    """
    from ..viz.picture import check_output

    if check_output(file).suffix.lower() != ".html":
        raise ValueError(f"The pictures are written to an .html file, not to '{file}'.")


def _own_text(screen: Screen, text: str | None, file: Path | None) -> str | None:
    """The user's text, None if there is none.

    Raises:
        ValueError: it is given twice, is empty, or cannot be read.
    """
    if text is not None and file is not None:
        raise ValueError("Give --text or --file, not both.")
    if file is not None:
        from ..readers import read_paragraphs

        text = "\n".join(read_paragraphs(file))
    if text is None:
        return None
    if not text.strip():
        raise ValueError("The text is empty; give a sentence or more.")
    if len(text) > MAX_CHARACTERS:
        screen.msg.warn(f"Only the first {MAX_CHARACTERS:,} characters are read.")
    return text[:MAX_CHARACTERS]
