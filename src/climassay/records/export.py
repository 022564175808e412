"""Writing recorded answers to a file: JSON lines, CSV or Parquet. The file appears when it is complete."""

import csv
import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.io import cannot_write, put, safe_cell
from climassay.records.database import Database
from climassay.records.queries import RecordedAnswer, iterate_answers

Bundles = Iterable[Sequence[RecordedAnswer]]
COLUMNS = tuple(field.name for field in fields(RecordedAnswer))


def export_answers(
    database: Database, path: Path, run: str | None = None, on_progress: Callable[[int], None] | None = None
) -> int:
    """Write answers with their requests to a file.

    Args:
        database: Where from.
        path: The ending decides the format: ``.jsonl``, ``.csv`` or ``.parquet``. In the latter two, settings and
            log-probabilities are JSON text and a Parquet list.
        run: Only what this run asked or was served.
        on_progress: Called with the number of answers written since the last call.

    Returns:
        Number of answers written.

    Raises:
        InputError: The ending is none of these, or the file cannot be written.
        RecordsError: There is no such run.
    """
    writers = {".jsonl": _write_jsonl, ".csv": _write_csv, ".parquet": _write_parquet}
    write = writers.get(path.suffix.lower())
    if write is None:
        raise InputError(f"{path.name} does not end in .jsonl, .csv or .parquet: choose one of these formats.")
    written = 0

    def counted() -> Bundles:
        nonlocal written
        for bundle in iterate_answers(database, run):
            yield bundle
            written += len(bundle)
            if on_progress is not None:
                on_progress(len(bundle))

    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        write(partial, counted())
        put(partial, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return written


def _write_jsonl(path: Path, bundles: Bundles) -> None:
    with path.open("w", encoding="utf-8") as file:
        for bundle in bundles:
            file.writelines(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in bundle)


def _write_csv(path: Path, bundles: Bundles) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for bundle in bundles:
            writer.writerows({name: safe_cell(cell) for name, cell in _flat(answer).items()} for answer in bundle)


def _flat(answer: RecordedAnswer) -> dict[str, Any]:
    row = asdict(answer)
    row["settings"] = json.dumps(answer.settings, ensure_ascii=False)
    row["logprobs"] = None if answer.logprobs is None else json.dumps(answer.logprobs)
    return row


def _write_parquet(path: Path, bundles: Bundles) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {
        "logprobs": pa.list_(pa.float64()),
        "prompt_tokens": pa.int64(),
        "completion_tokens": pa.int64(),
        "reasoning_tokens": pa.int64(),
        "attempts": pa.int64(),
        "cost": pa.float64(),
    }
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for bundle in bundles:
            rows = [_flat(answer) | {"logprobs": answer.logprobs} for answer in bundle]
            writer.write_table(pa.Table.from_pylist(rows, schema))
