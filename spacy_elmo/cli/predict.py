"""``python -m spacy elmo predict``: the likeliest words for the blanks of a text."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from wasabi import msg

from . import options

WAYS = {"forward": "left to right", "backward": "right to left", "both": "both"}


def predict_cli(
    text: Annotated[str, typer.Argument(help="Text with one or more blanks, ___", metavar="TEXT")],
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="Number of words for each blank")] = 10,
    weights: options.WeightsName = "en_sm",
    lang: options.TokenizerLang = None,
    precision: options.Precision = "float32",
    compiled: options.Compiled = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Fill the blanks (___) of a text with the likeliest words.

    The forward language model reads what is left of a blank, the backward one what is right of it;
    both together give p(w|left) p(w|right) / p(w). Each blank is filled on its own, from the words
    of its sentence; another blank in the sentence counts as an unknown word.
    """
    with options.report_errors("Cannot predict", as_json=as_json):
        data = predict(text, top, weights, lang, precision, compiled)
    if as_json:
        options.print_json(data)
        return
    for blank in data:
        print(f"{blank['left']}[___]{blank['right']}")
        columns = [[f"{guess['p']:6.1%}  {guess['word']}" for guess in blank[way]] for way in WAYS]
        most = max(map(len, columns))
        rows = list(zip(*(column + [""] * (most - len(column)) for column in columns), strict=True))
        msg.table(rows, header=tuple(WAYS.values()), divider=True)


def predict(
    text: str,
    top: int,
    setting: str,
    lang: str | None,
    precision: str = "float32",
    compiled: bool = False,
) -> list[dict[str, Any]]:
    """For each blank its sentence and the words for it, as plain JSON types.

    Raises:
        ValueError: there is no blank, or the weights have no head or cannot be read.
    """
    from ..lm.language_model import LanguageModel
    from ..text.readers import blank_pipeline
    from ..weights.find import find_weights
    from .find_blanks import find_blanks, prepare

    weights = find_weights(setting)
    blanks = find_blanks(blank_pipeline(weights, lang)(prepare(text)))
    if not blanks:
        raise ValueError(
            f"The text {text!r} has no blank: write ___ (three underscores, set off by spaces or "
            f"punctuation) for each word to predict."
        )
    lm = LanguageModel.load(weights, precision, compiled)
    data = []
    for blank in blanks:
        filled = zip(WAYS, lm.fill(blank.words, blank.place, top), strict=True)
        guesses = {way: [{"word": word, "p": p} for word, p in found] for way, found in filled}
        data.append({"left": blank.left, "right": blank.right, **guesses})
    return data
