"""Encodes a corpus on several machines, as an actor of Ray Data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spacy.vocab import Vocab

from ..text.readers import StoredDocs
from ..util.files import atomic_directory
from ..util.optional_imports import import_extra
from .block import import_pyarrow, plain_ids
from .encoder import Encoder
from .rows import PARQUET, RowFiles, check_row, parquet_columns

BATCH_ROWS = 256  # rows that an actor encodes together
BLOCK_TOKENS = 16384  # of texts that this process sends out


class EncodeTable:
    """An actor for ``Dataset.map_batches(…, batch_format="pyarrow")``; loads the weights once.

    Args:
        encoder: what it runs.
    """

    def __init__(self, encoder: Encoder):
        self.encoder = encoder

    def __call__(self, table: Any) -> Any:
        """From columns ``id`` and ``text`` or ``tokens`` to ``id``, ``tokens`` and ``vectors``.

        If there are both, ``text`` counts for rows whose ``tokens`` are null.
        """
        rows = []
        for row in table.drop_columns("id").to_pylist():
            column = "text" if row.get("tokens") is None else "tokens"
            rows.append(check_row(row.get(column), column))
        ids, id_type = plain_ids(table["id"])
        return self.encoder.encode(ids, rows, id_type).to_arrow()


def encode_on_ray(
    corpus: RowFiles, out: Path, encoder: Encoder, address: str, n_actors: int
) -> tuple[int, int]:
    """Write the vectors of a corpus to a directory of Parquet files.

    Args:
        corpus: Parquet with a column ``id`` is read by the cluster itself, anything else by this
            process, into its memory. Docs are read as their words.
        out: a directory that all machines share; it appears when all is written.
        encoder: what each actor runs; it loads the weights on its own machine.
        address: of the cluster; ``"local"`` starts one on this machine.
        n_actors: at most; each takes one core.

    Returns:
        Numbers of rows and vectors.

    Raises:
        ValueError: Ray is not installed, or there is something at ``out``.
    """
    need = "encoding on Ray needs ray"
    import_extra("ray.data", "ray", need, str(out))
    ray = import_extra("ray", "ray", need, str(out))
    if out.exists():
        raise ValueError(f"'{out}' exists already. Remove it or choose another directory.")
    if not ray.is_initialized():
        local = {"num_cpus": n_actors} if address == "local" else {}
        ray.init(address, log_to_driver=False, **local)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    files, columns = corpus.files(), common_columns(corpus)
    if len(columns) > 1:
        dataset = ray.data.read_parquet([str(file) for file in files], columns=columns)
    else:
        dataset = ray.data.from_arrow(tables(corpus))
    encoded = dataset.map_batches(
        EncodeTable,
        fn_constructor_args=(encoder,),
        batch_format="pyarrow",
        batch_size=BATCH_ROWS,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=n_actors),
        num_cpus=1,
    )
    with atomic_directory(out) as temporary:
        encoded.write_parquet(str(temporary), ray_remote_args={"num_cpus": 0})
        return measure(temporary)


def measure(directory: Path) -> tuple[int, int]:
    """Numbers of rows and vectors in a directory of Parquet files."""
    parquet = import_pyarrow(str(directory)).parquet
    n_rows = n_vectors = 0
    for file in directory.glob("*.parquet"):
        for batch in parquet.ParquetFile(file).iter_batches(columns=["tokens"]):
            n_rows += len(batch)
            n_vectors += len(batch["tokens"].flatten())
    return n_rows, n_vectors


def common_columns(corpus: RowFiles) -> list[str]:
    """The columns to read of Parquet files that have the same ones; empty for other corpora."""
    files = corpus.files()
    found = {tuple(parquet_columns(file)) if file.suffix == PARQUET else () for file in files}
    return list(found.pop()) if len(found) == 1 else []


def tables(corpus: RowFiles) -> list[Any]:
    """The rows of a corpus as Arrow tables of ``id``, ``text`` and ``tokens``, one of them null."""
    pa = import_pyarrow("Blocks of a dataset")
    found = []
    for ids, rows, id_type in corpus.chunks(BLOCK_TOKENS):
        if isinstance(rows, StoredDocs):
            rows = [[token.text for token in doc] for doc in rows.read(Vocab())]
        columns = [("text" if isinstance(row, str) else "tokens") for row in rows]
        named = [{"id": id, name: row} for id, name, row in zip(ids, columns, rows, strict=True)]
        types = {"text": pa.string(), "tokens": pa.list_(pa.string())}
        schema = pa.schema({"id": pa.type_for_alias(id_type), **types})
        found.append(pa.Table.from_pylist(named, schema))
    return found
