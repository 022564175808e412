"""Read Parquet tables within bounds: a file of some kilobytes can stand for more rows than any memory holds."""

import io
from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_BYTES = 512 << 20
"""Of all values of a table, written out."""
MOST_CELLS = 50_000_000
ROWS_AT_ONCE = 16_384


class ParquetTable(NamedTuple):
    """A table in memory."""

    names: list[str]
    rows: list[Mapping[str, Any]]


def read_parquet(data: bytes, most_bytes: int = MOST_BYTES) -> ParquetTable:
    """Read a Parquet file.

    Columns whose values repeat are counted before they are written out, so that what is too large is refused before it
    is in memory. What a file says of its own size is not relied upon.

    Args:
        data: The file.
        most_bytes: Of all values, written out.

    Raises:
        ValueError: It is damaged, or larger than ``most_bytes`` or :data:`MOST_CELLS`; the message is a clause without
            the file's name.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        facts = pyarrow.parquet.read_metadata(io.BytesIO(data))
        _check_cells(facts.num_rows * max(1, facts.num_columns))
        schema = facts.schema.to_arrow_schema()
        texts = [field.name for field in schema if _is_text(field.type)]
        file = pyarrow.parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts)
        rows: list[Mapping[str, Any]] = []
        size = 0
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            size += sum(_written_out(column) for column in batch.columns)
            if size > most_bytes:
                raise ValueError(f"it unpacks to more than the limit of {most_bytes >> 20} MB")
            plain = [_plain(column).to_pylist() for column in batch.columns]
            rows += [dict(zip(schema.names, row, strict=True)) for row in zip(*plain, strict=True)]
            _check_cells(len(rows) * batch.num_columns)
    except (pyarrow.ArrowException, OSError) as error:
        said = str(error).splitlines()[0].rstrip(".") if str(error) else "damaged"
        raise ValueError(f"it is damaged or truncated: {said}") from None
    return ParquetTable(list(schema.names), rows)


def _check_cells(cells: int) -> None:
    if cells > MOST_CELLS:
        raise ValueError(f"it has more than {MOST_CELLS:,} cells")


def _is_text(kind: Any) -> bool:
    import pyarrow

    checks = (pyarrow.types.is_string, pyarrow.types.is_binary)
    return any(check(kind) for check in checks)


def _plain(column: Any) -> Any:
    import pyarrow

    return column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column


def _written_out(column: Any) -> int:
    """Bytes of a column's values, each counted as often as it stands there."""
    import pyarrow
    import pyarrow.compute

    if not pyarrow.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pyarrow.compute.binary_length(column.dictionary).cast(pyarrow.int64())
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)
