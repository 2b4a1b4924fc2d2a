"""``python -m spacy elmo neighbors``: the contexts of a word, grouped by sense."""

from __future__ import annotations

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
            word, corpus, weights=weights, lang=lang, tokenized=tokenized,
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
            left, middle, right = context.text
            print(f"  {left}[{middle}]{right}")
    if not found.complete:
        msg.info(f"The corpus has more contexts than {most_contexts}; --max-contexts reads more.")
