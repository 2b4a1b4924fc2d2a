"""``python -m spacy elmo neighbors`` and ``senses``: the contexts of a word, grouped by sense."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..senses.clusters import MOST_ITEMS
from . import options


def neighbors_cli(
    word: options.Word,
    corpus: options.CorpusIn,
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="Number of contexts to show for each sense")] = 5,
    weights: options.BiLMName = "en_sm",
    lang: options.TokenizerLang = None,
    tokenized: options.TokenizedText = False,
    column: options.Column = None,
    most_contexts: options.MostContexts = MOST_ITEMS,
    n_senses: options.NumberOfSenses = None,
    precision: options.Precision = "float32",
    compiled: options.Compiled = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """
    Show the contexts of a word in a corpus, grouped by sense.

    Contexts are grouped by what surrounds the word: its context, the other words and the topic of
    its sentence, with average linkage on their cosine distances; the number of groups is the one with the best silhouette (or --senses). In
    each group the most typical contexts come first, and the words that set its contexts apart
    are named. Groups are of similar contexts: they need not be the senses of a dictionary. With
    --json, all contexts are printed.
    """
    from ..senses.occurrences import find_senses

    with options.report_errors(f"Cannot find contexts of '{word}'", as_json=as_json):
        found = find_senses(
            word, corpus, weights=weights, lang=lang, tokenized=tokenized, column=column,
            most_contexts=most_contexts, n_senses=n_senses, precision=precision,
            compiled=compiled, quiet=quiet,
        )  # fmt: skip
    if as_json:
        options.print_json(found.to_json())
        return
    for number, group in enumerate(found.groups, 1):
        msg.divider(f"sense {number}: {len(group.contexts)} contexts")
        if group.keywords:
            print(", ".join(group.keywords))
        for context in group.contexts[:top]:
            print("  {}[{}]{}".format(*context.text))
    if not found.complete:
        msg.info(f"The corpus has more contexts than {most_contexts}; --max-contexts reads more.")


def senses_cli(
    word: options.Word,
    corpus: options.CorpusIn,
    output: options.PictureFile = Path("senses.html"),
    weights: options.BiLMName = "en_sm",
    lang: options.TokenizerLang = None,
    tokenized: options.TokenizedText = False,
    column: options.Column = None,
    most_contexts: options.MostContexts = MOST_ITEMS,
    n_senses: options.NumberOfSenses = None,
    precision: options.Precision = "float32",
    compiled: options.Compiled = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
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
            word, corpus, weights=weights, lang=lang, tokenized=tokenized, column=column,
            most_contexts=most_contexts, n_senses=n_senses, precision=precision,
            compiled=compiled, quiet=quiet,
        )  # fmt: skip
        draw_senses(found).save(output)
    text = f"Drew {len(found.groups)} groups of contexts of '{found.word}'"
    options.print_result(text, {"output": str(output), **found.to_json()}, as_json, quiet)
