"""The contexts of a word in the raw text, grouped by sense."""

from __future__ import annotations

from pathlib import Path

import typer
from wasabi import msg

from spacy_elmo import find_senses
from spacy_elmo.viz import draw_senses

WORDS = {"en": "bank", "ko": "말"}  # 말: horse, speech, end


def main(run: Path, word: str = "auto", lang: str = "en") -> None:
    """Write RUN/senses.svg."""
    word = WORDS.get(lang, "") if word == "auto" else word
    weights = (run / "bilm.txt").read_text(encoding="utf-8").strip()
    try:
        if not word:
            raise ValueError(f"Name a word of the language '{lang}' with --vars.word.")
        found = find_senses(word, str(run / "text" / "train.txt"), weights=weights, lang=lang)
    except ValueError as error:  # other words may be there: no reason to end the run
        msg.warn("There is no picture of senses", str(error))
        return
    draw_senses(found, output=run / "senses.svg")
    for group in found.groups:
        print(f"{len(group.contexts):4}  {', '.join(group.keywords)}")
    msg.good(f"Drew {len(found.groups)} groups of contexts of '{word}'", str(run / "senses.svg"))


if __name__ == "__main__":
    typer.run(main)
