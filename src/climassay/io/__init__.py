"""Reading files within limits, rows of tables of any common format, and atomic writing."""

from climassay.io.reading import (
    MAX_TABLE_BYTES,
    decompress,
    first_problem,
    format_size,
    join_surrogates,
    parse_json,
    read_file,
    read_lines,
    read_text,
    reason,
)
from climassay.io.rows import (
    Row,
    column_key,
    find_column,
    listed_names,
    parse_rows,
    read_bytes,
    read_parquet,
    require_column,
    safe_cell,
)
from climassay.io.writing import STALE_SECONDS, atomic_path, remove_files, replace_file, write_file, write_files

__all__ = [
    "MAX_TABLE_BYTES", "STALE_SECONDS", "Row", "atomic_path", "column_key", "decompress", "find_column",
    "first_problem", "format_size", "join_surrogates", "listed_names", "parse_json", "parse_rows", "read_bytes",
    "read_file", "read_lines", "read_parquet", "read_text", "reason", "remove_files", "replace_file",
    "require_column", "safe_cell", "write_file", "write_files",
]  # fmt: skip
