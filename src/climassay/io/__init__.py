"""Read files within size limits, parse tables of common formats, and write files atomically."""

from climassay.io.reading import (
    MAX_TABLE_BYTES,
    decompress,
    describe_first_problem,
    format_size,
    join_surrogates,
    parse_json,
    read_file,
    read_lines,
    read_text,
    describe_error,
)
from climassay.io.rows import (
    Row,
    normalise_column_name,
    find_column,
    format_names,
    parse_rows,
    read_bytes,
    read_parquet,
    require_column,
    safe_cell,
)
from climassay.io.writing import STALE_SECONDS, atomic_path, remove_files, replace_file, write_file, write_files

__all__ = [
    "MAX_TABLE_BYTES",
    "STALE_SECONDS",
    "Row",
    "atomic_path",
    "decompress",
    "describe_error",
    "describe_first_problem",
    "find_column",
    "format_names",
    "format_size",
    "join_surrogates",
    "normalise_column_name",
    "parse_json",
    "parse_rows",
    "read_bytes",
    "read_file",
    "read_lines",
    "read_parquet",
    "read_text",
    "remove_files",
    "replace_file",
    "require_column",
    "safe_cell",
    "write_file",
    "write_files",
]  # fmt: skip
