"""``python -m spacy elmo demo``: see contextual vectors and the language model at work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from spacy.language import Language

    from ..lm.language_model import LanguageModel
    from .demo_screen import Screen

MAX_CHARACTERS = 100_000  # of the user's text


def demo_cli(
    # fmt: off
    text: str | None = typer.Option(
        None, "--text", "-t", help="Your own text; ___ stands for a word to be guessed"
    ),
    file: Path | None = typer.Option(None, "--file", "-f", help="A text file of your own (UTF-8)"),
    weights: str = typer.Option("en_sm", "--weights", "-w", help="Name or directory of the biLM"),
    n: int = typer.Option(3, "--n", "-n", min=1, help="Nearest contexts to show"),
    all_words: bool = typer.Option(
        False, "--all", "-a", help="Show every word of the demo, not the first few only"
    ),
    # fmt: on
) -> None:
    """
    See ELMo at work: what a word's vectors tell in different sentences, and words for a blank.

    Without a text of your own, it reads sentences with ambiguous words that come with it. With
    --text or --file, it compares the contexts of the words that your text repeats, and guesses
    words for its blanks (___).
    """
    from .demo_screen import Screen

    screen = Screen()
    own = None
    if text is not None and file is not None:
        screen.msg.fail("Give --text or --file, not both.", exits=1)
    elif text is not None or file is not None:
        own = _own_text(screen, text, file)
    try:
        nlp, lm = _load(weights)
    except (ValueError, ImportError) as error:
        screen.msg.fail(f"Cannot load the weights '{weights}'", str(error), exits=1)
    if own is not None:
        from .demo_text import show_text

        show_text(screen, nlp, lm, own, n)
    else:
        from .demo_tour import show_tour

        show_tour(screen, nlp, lm, n, all_words)


def _own_text(screen: Screen, text: str | None, file: Path | None) -> str:
    """The user's text; fails if there is none."""
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8-sig")
        except OSError as error:
            screen.msg.fail(f"Cannot read the file '{file}'", error.strerror, exits=1)
        except UnicodeDecodeError as error:
            screen.msg.fail(f"The file '{file}' is not UTF-8 text", str(error), exits=1)
    if not text or text.isspace():
        name = "--text" if file is None else f"The file '{file}'"
        screen.msg.fail(f"{name} is empty; give a sentence or more.", exits=1)
    if len(text) > MAX_CHARACTERS:
        screen.msg.warn(f"Only the first {MAX_CHARACTERS:,} characters are read.")
        text = text[:MAX_CHARACTERS]
    return text


def _load(weights: str) -> tuple[Language, LanguageModel | None]:
    """A pipeline of the elmo component alone; and what fills blanks, if there is a head."""
    import spacy

    from ..bilm.find import find_weights

    nlp = spacy.blank("en")
    config = {"store_layers": True, "model": {"weights": str(weights)}}
    elmo = nlp.add_pipe("elmo", config=config)
    bilm = elmo.model.get_ref("bilm").shims[0].bilm  # type: ignore[attr-defined]  # loads it
    if not find_weights(weights).has_head():
        return nlp, None
    from ..lm.head import load_head
    from ..lm.language_model import LanguageModel

    return nlp, LanguageModel(bilm, *load_head(weights))
