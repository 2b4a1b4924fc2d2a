"""``python -m spacy elmo senses``: groups the contexts of a word by sense."""

from __future__ import annotations

from typing import Annotated

import typer
from wasabi import msg

from ..senses.clusters import MOST_ITEMS
from . import options


@options.app.command("senses")
def senses_cli(
    word: Annotated[str, typer.Argument(help="A word that is a single token; upper and lower case are the same", metavar="WORD")],
    corpus: Annotated[str, typer.Option("--in", "-i", help="File, directory or pattern of a corpus: .txt, .jsonl, .csv, .tsv (each also .gz or .xz), .parquet, .spacy, or shards", metavar="CORPUS")],
    output: options.Picture = None,
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="Number of contexts to show for each sense")] = 5,
    weights: options.BiLMName = "en_sm",
    lang: options.TokenizerLang = None,
    tokenized: Annotated[bool, typer.Option("--tokenized", "-t", help="Text files have one sentence per line, words separated by spaces")] = False,
    column: options.Column = None,
    max_contexts: Annotated[int, typer.Option("--max-contexts", min=3, help="Largest number of contexts to group; of more, a sample is taken")] = MOST_ITEMS,
    n_senses: Annotated[int | None, typer.Option("--senses", "-s", min=1, help="Number of groups (default: the one with the best silhouette, at most 8)")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """
    Group the contexts of a word in a corpus by sense.

    Contexts are compared by what the biLM expects in the word's place, by the other words in the
    sentence, and by the topic of the sentence. Average linkage on cosine distances groups them. The
    number of groups is the one with the best silhouette (or --senses). Each group shows its
    keywords, and its most typical contexts first. Equal sentences count once. Similar contexts need
    not have the same sense in a dictionary. --json prints all contexts. The command needs the extra
    viz.

    The picture has a point for each context, with words of its sentence if there is room. Near
    points are similar contexts: the axes are the first two principal components of the word's
    vectors.
    """
    from ..senses.occurrences import find_senses
    from ..viz import draw_senses
    from ..viz.figure import check_output

    with options.report_errors(f"Cannot find the senses of '{word}'", as_json=as_json):
        check_output(output)
        senses = find_senses(
            word, corpus, weights=weights, lang=lang, tokenized=tokenized, column=column,
            max_contexts=max_contexts, n_senses=n_senses, quiet=quiet,
        )  # fmt: skip
        if output is not None:
            draw_senses(senses, output=output)
    if as_json:
        written = {} if output is None else {"output": str(output)}
        options.print_json(written | senses.to_json())
        return
    for number, group in enumerate(senses.groups, 1):
        msg.divider(f"sense {number}: {len(group.contexts)} contexts")
        print(", ".join(group.keywords))
        for context in group.contexts[:top]:
            print("  {}[{}]{}".format(*context.text))
    if len(senses.groups) == 1 and n_senses is None:
        msg.info(f"One group, because {senses.why_one}. --senses 2 divides these contexts anyway.")
    if not senses.complete:
        msg.info(f"These are a sample of {max_contexts} contexts; --max-contexts groups more.")
    if output is not None and not quiet:
        msg.good("Drew the contexts", str(output))
