"""``python -m spacy elmo predict``: fills the blanks of a text with the likeliest words."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import options


@options.app.command("predict")
def predict_cli(
    text: Annotated[str, typer.Argument(help="Text with one or more blanks, ___", metavar="TEXT")],
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="Number of words for each blank")] = 10,
    weights: options.WeightsName = "en_sm",
    lang: options.TokenizerLang = None,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Fill the blanks (___) of a text with the likeliest words.

    The forward language model reads the words to the left of a blank, the backward one those to the
    right; both together give p(w|left) p(w|right) / p(w). Each blank is filled alone, from the
    words of its sentence; another blank in the sentence counts as an unknown word.
    """
    from ..lm.language_model import LanguageModel
    from ..text.readers import blank_pipeline
    from ..weights.find import find_weights
    from .find_blanks import find_blanks, print_filled

    with options.report_errors("Cannot predict", as_json=as_json):
        weights_found = find_weights(weights)
        blanks = find_blanks(blank_pipeline(weights_found, lang), text)
        if not blanks:
            raise ValueError(
                f"The text {text!r} has no blank: write ___ (three underscores, set off by spaces "
                f"or punctuation) for each word to predict."
            )
        lm = LanguageModel.load(weights_found)
        data: list[dict[str, Any]] = []
        for blank in blanks:
            filled = lm.fill(blank.words, blank.place, top)
            if not as_json:
                print_filled(blank, filled)
            guesses = {
                model: [{"word": word, "p": p} for word, p in words]
                for model, words in filled._asdict().items()
            }
            data.append({"left": blank.left, "right": blank.right, **guesses})
    if as_json:
        options.print_json(data)
