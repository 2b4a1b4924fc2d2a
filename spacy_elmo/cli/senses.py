"""``python -m spacy elmo senses``: a picture of the senses of a word."""

from __future__ import annotations

from pathlib import Path

from wasabi import msg

from ..senses.clusters import MOST_ITEMS
from .options import (
    BiLMName,
    Compiled,
    CorpusIn,
    Json,
    MostContexts,
    NumberOfSenses,
    PictureFile,
    Precision,
    Quiet,
    TokenizedText,
    TokenizerLang,
    Word,
    print_json,
    report_errors,
)


def senses_cli(
    word: Word,
    corpus: CorpusIn,
    output: PictureFile = Path("senses.html"),
    weights: BiLMName = "en_sm",
    lang: TokenizerLang = None,
    tokenized: TokenizedText = False,
    most_contexts: MostContexts = MOST_ITEMS,
    n_senses: NumberOfSenses = None,
    precision: Precision = "float32",
    compiled: Compiled = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """
    Draw the contexts of a word in a corpus, grouped by sense.

    Each context is a point: near points are similar contexts (the first two principal components of
    the word's vectors). Groups have a colour and a shape of their own, and are those of `elmo
    neighbors`. The .html is a single file that shows each sentence at its point and in a list.
    With --json, all contexts are printed too.
    """
    from ..senses.occurrences import find_senses
    from ..viz.contexts import draw_senses
    from ..viz.picture import check_output

    with report_errors(f"Cannot draw the senses of '{word}'", as_json=as_json):
        check_output(output)
        found = find_senses(
            word, corpus, weights=weights, lang=lang, tokenized=tokenized,
            most_contexts=most_contexts, n_senses=n_senses, precision=precision,
            compiled=compiled, quiet=quiet,
        )  # fmt: skip
        draw_senses(found).save(output)
    if as_json:
        print_json({"output": str(output), **found.to_json()})
    elif not quiet:
        msg.good(f"Drew {len(found.groups)} groups of contexts of '{found.word}'", str(output))
