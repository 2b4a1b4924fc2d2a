"""``python -m spacy elmo senses``: a picture of the senses of a word."""

from __future__ import annotations

from pathlib import Path

from ..senses.clusters import MOST_ITEMS
from . import options


def senses_cli(
    word: options.Word,
    corpus: options.CorpusIn,
    output: options.PictureFile = Path("senses.html"),
    weights: options.BiLMName = "en_sm",
    lang: options.TokenizerLang = None,
    tokenized: options.TokenizedText = False,
    most_contexts: options.MostContexts = MOST_ITEMS,
    n_senses: options.NumberOfSenses = None,
    precision: options.Precision = "float32",
    compiled: options.Compiled = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
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

    with options.report_errors(f"Cannot draw the senses of '{word}'", as_json=as_json):
        check_output(output)
        found = find_senses(
            word, corpus, weights=weights, lang=lang, tokenized=tokenized,
            most_contexts=most_contexts, n_senses=n_senses, precision=precision,
            compiled=compiled, quiet=quiet,
        )  # fmt: skip
        draw_senses(found).save(output)
    text = f"Drew {len(found.groups)} groups of contexts of '{found.word}'"
    options.print_result(text, {"output": str(output), **found.to_json()}, as_json, quiet)
