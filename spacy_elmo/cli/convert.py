"""``python -m spacy elmo convert``: converts a biLM to our format, or to the published one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from ..util.settings import check_choice
from . import options

if TYPE_CHECKING:
    from ..weights.convert.source import Source

FEW_WORDS = 2000  # statistics of fewer words are rough


@options.app.command("convert")
def convert_cli(
    sources: Annotated[list[str], typer.Argument(help="Directory or zip of a biLM in any format, name of one, or two files (options.json and HDF5)", metavar="IN...")],
    out: Annotated[Path, typer.Argument(help="Directory to write", metavar="OUT")],
    to: Annotated[str, typer.Option("--to", "-t", help="Format to write: native (that of this package) or published (options.json and HDF5)")] = "native",
    warm_text: Annotated[Path | None, typer.Option("--warm-text", help="Text in the language of the biLM, 30 sentences or more, to compute its warm state from", exists=True, dir_okay=False)] = None,
    statistics: Annotated[Path | None, typer.Option("--statistics", "-s", help="Text in the language of the biLM, some ten thousand words or more, to compute from it the statistics that similarities need", exists=True, dir_okay=False)] = None,
    lang: Annotated[str | None, typer.Option("--lang", "-l", help="Language of the biLM for its card, as a spaCy code (nb)")] = None,
    vocab: Annotated[Path | None, typer.Option("--vocab", help="Vocabulary of a published head, one word per line (default: the vocab.txt in the directory or zip)", exists=True, dir_okay=False)] = None,
    half: Annotated[bool, typer.Option("--half", help="Store the weights in half precision (native format only)")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="Round the weights of the LSTMs' gates to int8, for speed on a CPU, before a warm state or statistics are computed")] = False,
    no_head: Annotated[bool, typer.Option("--no-head", help="Leave out the language-model head and its vocabulary")] = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Convert a biLM to the format of this package, or to the published one.

    The format of this package is a directory with config.json and weights.safetensors; the
    published format is an options.json with an HDF5 file, which the archived ELMo implementations
    can read. IN can also be a directory of ELMoForManyLangs. Published weights get a warm state,
    the state from which every sentence starts. It is computed from an English text; give
    --warm-text for another language. With --statistics, `similarity` in pipelines compares words
    and their contexts; without, it is the cosine of mean vectors.
    """
    from ..bilm.int8 import round_gates
    from ..util.files import atomic_directory
    from ..util.optional_imports import require_extra
    from ..weights.convert.source import read_source

    with options.report_errors("Cannot convert", as_json=as_json):
        check_choice("--to", to, ("native", "published"))
        if to == "published" and (half or warm_text is not None):
            raise ValueError("The published format has no --half and no --warm-text: drop them.")
        if to == "published":
            require_extra("h5py", "hdf5", "HDF5 needs h5py", str(out))
        path = options.output_directory(out, force, _own_names(out))
        source = read_source(sources, vocab)
        if no_head:
            source.words, source.head = None, {}
        if lang:
            source.card.meta["lang"] = lang
        if vocab is not None and (source.format != "published" or source.words is None):
            raise ValueError(f"There is no published head for --vocab in {sources}: drop it.")
        if source.words == []:
            msg.warn(
                "The head (the softmax layer that predicts words) is left out, because its "
                "vocabulary is unknown. Give it with --vocab."
            )
        if int8:
            round_gates(source.model)
        had_statistics = source.statistics is not None
        if to == "native":
            add_warm_state(source, warm_text)
        elif source.model.warm_h is not None:
            msg.warn(
                "The stored warm state is left out, because the published format has no place "
                "for it. Readers of these weights compute their own, perhaps from another text."
            )
        if statistics is not None:
            add_statistics(source, statistics)
        elif had_statistics and source.statistics is None:
            msg.warn(
                "The statistics for similarity are left out, because they are those of another "
                "warm state. Give --statistics with a text to compute them again."
            )
        with atomic_directory(path) as directory:
            source.save(directory, to, half)
    n_parameters = sum(p.numel() for p in source.model.parameters())
    text = f"Wrote {n_parameters / 1e6:.1f} M parameters in the {to} format"
    data = {"output": str(out), "format": to, "parameters": n_parameters}
    options.print_result(text, data, as_json)


def add_warm_state(source: Source, text: Path | None) -> None:
    """Compute the warm state of a biLM, if it needs one.

    Args:
        source: the biLM.
        text: a text in the biLM's language; None for the package's English passage.

    Raises:
        ValueError: the text is too short, or the biLM starts from a zero state.
    """
    from ..bilm.model import N_STREAMS

    lang = source.card.meta.get("lang") or ""
    if text is not None:
        if source.model.config.initial_state != "warm":
            raise ValueError(
                "--warm-text is for biLMs whose state was carried from sentence to sentence, but "
                "this one was trained from a zero state (initial_state is 'zero'). Drop it."
            )
        sentences = _read_text(source, text)
        if len(sentences) < N_STREAMS:
            raise ValueError(
                f"'{text}' has {len(sentences)} sentences; a warm state needs at least "
                f"{N_STREAMS}, better 30."
            )
        source.compute_warm_state(sentences)
    elif source.lacks_warm_state():
        source.compute_warm_state()
        if not lang.lower().startswith("en"):
            msg.warn(
                f"The warm state was computed from English text, and the language is "
                f"{lang or 'unknown'!r}. Give --lang, and --warm-text with some 30 sentences in it."
            )


def add_statistics(source: Source, text: Path) -> None:
    """Compute the statistics of a biLM, whose warm state must be set.

    Args:
        source: the biLM.
        text: a text in the biLM's language.

    Raises:
        ValueError: the text has fewer than two distinct words.
    """
    from ..bilm.sentence_batches import IndexedSentences
    from ..weights.statistics import compute_statistics

    read = source.model.char_cnn.to_ids.read
    sentences = IndexedSentences(map(read, _read_text(source, text)), max_words=100)
    source.statistics = compute_statistics(source.model, sentences)
    if source.statistics is None:
        raise ValueError(f"'{text}' has no two distinct words, which statistics need.")
    n_words = len(sentences.tokens) - 2 * len(sentences.lengths)
    if n_words < FEW_WORDS:
        msg.warn(
            f"The statistics are of {n_words:,} words, those of '{text}', and similarities will be "
            f"rough. Give some ten thousand."
        )


def _read_text(source: Source, text: Path) -> list[list[str]]:
    """Read the sentences of a text, with the tokenizer that the card names, or its language's."""
    from spacy.util import get_lang_class

    from ..text.files import paragraphs_in
    from ..text.readers import blank, split_text

    lang, tokenizer = source.card.meta.get("lang") or "xx", source.card.meta.get("tokenizer")
    try:
        get_lang_class(lang)
    except ImportError:
        msg.warn(
            f"spaCy does not support the language '{lang}': the text is tokenized as "
            f"multi-language ('xx'). If spaCy uses another code for it (Norwegian is 'nb'), give "
            f"that with --lang."
        )
        lang = "xx"
    return list(split_text(blank(lang, tokenizer), paragraphs_in(text)))


def _own_names(out: Path) -> set[str]:
    """The names of files that `convert` writes; none if the directory has no weights."""
    from ..weights.convert.published import MODEL, OPTIONS
    from ..weights.layout import CONFIG, FILES, WEIGHTS

    pairs = ((CONFIG, WEIGHTS), (OPTIONS, MODEL))
    is_own = any(all((out / name).is_file() for name in pair) for pair in pairs)
    return {*FILES, OPTIONS, MODEL} if is_own else set()
