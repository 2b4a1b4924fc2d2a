"""``python -m spacy elmo predict``: the likeliest words for the blanks of a text."""

from __future__ import annotations

import json
from typing import Any

import typer
from wasabi import msg

WAYS = {"forward": "left to right", "backward": "right to left", "both": "both"}


def predict_cli(
    # fmt: off
    text: str = typer.Argument(..., help="Text with one or several blanks, ___", metavar="TEXT"),
    top: int = typer.Option(10, "--top", "-n", min=1, help="Words for each blank"),
    weights: str = typer.Option(
        "en_sm",
        "--weights",
        "-w",
        help="Name, directory or zip of weights that have a language-model head",
    ),
    lang: str | None = typer.Option(
        None, "--lang", "-l", help="Language whose tokenizer is used, if not that of the weights"
    ),
    as_json: bool = typer.Option(False, "--json", "-j", help="Print JSON"),
    # fmt: on
) -> None:
    """
    Fill the blanks (___) of a text with the likeliest words.

    The forward language model knows what is left of a blank, the backward one what is right of it;
    both together is p(w|left) p(w|right) / p(w). A blank is filled by the words of its own
    sentence, and for itself: of another blank they only see that there is a word.
    """
    try:
        data = predict(text, top, weights, lang)
    except (ValueError, ImportError, OSError) as error:
        msg.fail("Cannot predict", str(error), exits=1)
    if as_json:
        print(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for blank in data:
        print(f"{blank['left']}[___]{blank['right']}")
        columns = [[f"{guess['p']:6.1%}  {guess['word']}" for guess in blank[way]] for way in WAYS]
        most = max(map(len, columns))
        rows = list(zip(*(column + [""] * (most - len(column)) for column in columns), strict=True))
        msg.table(rows, header=tuple(WAYS.values()), divider=True)


def predict(text: str, top: int, setting: str, lang: str | None) -> list[dict[str, Any]]:
    """For each blank its sentence and the words for it, as plain JSON types.

    Raises:
        ValueError: there is no blank, or the weights have no head or cannot be read.
        ImportError: the tokenizer of the language is not there.
    """
    from ..bilm.find import find_weights
    from ..lm.language_model import LanguageModel
    from .blanks import find_blanks, prepare
    from .language import blank_pipeline

    weights = find_weights(setting)
    blanks = find_blanks(blank_pipeline(weights, lang)(prepare(text)))
    if not blanks:
        raise ValueError(
            f"The text {text!r} has no blank: write ___ (three underscores, as a word of their "
            f"own) where a word is to be predicted."
        )
    lm = LanguageModel.load(weights)
    data = []
    for blank in blanks:
        filled = zip(WAYS, lm.fill(blank.words, blank.place, top), strict=True)
        guesses = {way: [{"word": word, "p": p} for word, p in found] for way, found in filled}
        data.append({"left": blank.left, "right": blank.right, **guesses})
    return data
