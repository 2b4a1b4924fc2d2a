"""``python -m spacy elmo encode``: writes the vectors of a corpus to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options


@options.app.command("encode")
def encode_cli(
    corpus: Annotated[str, typer.Argument(help="File, directory or pattern. Rows are the lines of a .txt file, the texts of a .jsonl, .csv or .tsv file (each also .gz or .xz) or a .parquet file, the Docs of a .spacy file, and the sentences of shards", metavar="CORPUS")],
    out: Annotated[Path, typer.Argument(help="What to write: a directory of Parquet files, .parquet, or a file .npy", metavar="OUT")],
    weights: options.BiLMName = "en_sm",
    pipeline: Annotated[str | None, typer.Option("--pipeline", "-p", help="Name or directory of a spaCy pipeline, to use instead of --weights: its last elmo component, and those before it, for example to split sentences")] = None,
    layers: Annotated[str, typer.Option("--layers", help="mix (of all layers, as in doc.tensor), top or all")] = "mix",
    level: Annotated[str, typer.Option("--level", help="tokens, sentences or documents: what a vector belongs to. The last two are means of the words")] = "tokens",
    dtype: Annotated[str, typer.Option("--dtype", help="float32 or float16")] = "float32",
    lang: options.TokenizerLang = None,
    tokenized: Annotated[bool, typer.Option("--tokenized", "-t", help="Text files have one sentence per line, words separated by spaces. Shards that `elmo tokenize` has written are recognized without it")] = False,
    column: options.Column = None,
    n_process: options.Processes = 1,
    resume: Annotated[bool, typer.Option("--resume", "-r", help="Continue an interrupted job. Without one, start from the beginning")] = False,
    force: options.Force = False,
    ray: Annotated[str | None, typer.Option("--ray", help="Address of a Ray cluster, which runs --n-process tasks at a time; 'local' starts one on this machine. OUT is on storage that all machines share", metavar="ADDRESS")] = None,
    gpu_id: options.GpuId = -1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """
    Write the vectors of a corpus.

    The output has one row for each line, sentence or Doc of the corpus, in order, also for empty
    ones. A .parquet file has the columns id (the number of the row), tokens and vectors (a vector
    for each token); --level sentences has the column sentences instead of tokens, --level documents
    the column text. A .npy file is one array of all vectors; a second file has the start of each
    row, and a third the rest. The command needs the extra parquet.

    OUT.parts has the finished parts until the job is done. If a job was killed, --resume goes on
    from them, and repeats or skips no row. OUT.json describes the vectors. The result does not
    depend on --n-process.
    """
    from ..encoding.job import encode

    with options.report_errors("Cannot encode", as_json=as_json):
        if gpu_id >= 0:
            if n_process > 1 or ray is not None:
                raise ValueError("On a GPU there is one process: drop --n-process and --ray.")
            from spacy import require_gpu

            require_gpu(gpu_id)
        summary = encode(
            corpus, out, weights=weights, pipeline=pipeline, layers=layers, level=level,
            dtype=dtype, lang=lang, tokenized=tokenized, column=column,
            n_process=n_process, resume=resume, force=force, ray=ray, quiet=quiet,
        )  # fmt: skip
    text = f"{summary.n_vectors:,} vectors in {summary.n_rows:,} rows"
    data = {"output": str(out), "rows": summary.n_rows, "vectors": summary.n_vectors}
    options.print_result(text, data, as_json, quiet)
