"""Export of recorded answers to a file, and import of such files.

An import changes no stored answer. An answer whose request, run and time equal those of a stored answer is skipped. If
both the file and the database have an answer to a request, later runs reuse the answer of the database.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from datetime import datetime
from operator import add
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import ConfigDict, TypeAdapter

from climassay import __version__
from climassay.errors import InputError
from climassay.io import atomic_path, describe_first_problem, parse_json, read_lines, safe_cell
from climassay.records import tables
from climassay.records.database import Database, split_keys
from climassay.records.identity import REPLACEMENT, Identity, canonical_json, insert_requests
from climassay.records.queries import format_time
from climassay.records.recorded_answers import ROWS_PER_BATCH, RecordedAnswer, iterate_answers

Batches = Iterable[Sequence[RecordedAnswer]]
COLUMNS = tuple(field.name for field in fields(RecordedAnswer))
_ANSWER = TypeAdapter(tuple[RecordedAnswer], config=ConfigDict(extra="forbid"))


def export_answers(
    database: Database, path: Path, run: str | None = None, on_progress: Callable[[int], None] | None = None
) -> int:
    """Write answers with their requests to a file.

    Args:
        database: Records database.
        path: Output file; its suffix ``.jsonl``, ``.csv`` or ``.parquet`` determines the format. Settings are JSON text
            in CSV and Parquet. Log-probabilities are JSON text in CSV and a list in Parquet.
        run: Id of a run, to export only the answers that it received or reused.
        on_progress: Function called with the number of answers written since its last call.

    Returns:
        Number of answers written.

    Raises:
        InputError: The suffix is not supported, or the file cannot be written.
        RecordsError: The run does not exist.
    """
    writers = {".jsonl": _write_jsonl, ".csv": _write_csv, ".parquet": _write_parquet}
    write_batches = writers.get(path.suffix.lower())
    if write_batches is None:
        raise InputError(f"{path.name} does not end in .jsonl, .csv or .parquet: choose one of these formats.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent}: choose another place.")
    n_written = 0

    def counted_batches() -> Batches:
        nonlocal n_written
        for batch in iterate_answers(database, run):
            yield batch
            n_written += len(batch)
            if on_progress is not None:
                on_progress(len(batch))

    with atomic_path(path) as temporary_file:
        write_batches(temporary_file, counted_batches())
    return n_written


def _write_jsonl(path: Path, batches: Batches) -> None:
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            file.writelines(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in batch)


def _write_csv(path: Path, batches: Batches) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for batch in batches:
            writer.writerows({name: safe_cell(cell) for name, cell in _to_flat_row(answer).items()} for answer in batch)


def _to_flat_row(answer: RecordedAnswer) -> dict[str, Any]:
    row = asdict(answer)
    row["settings"] = json.dumps(answer.settings, ensure_ascii=False)
    row["logprobs"] = None if answer.logprobs is None else json.dumps(answer.logprobs)
    return row


def _write_parquet(path: Path, batches: Batches) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    types_by_column = {
        "logprobs": pa.list_(pa.float64()),
        "prompt_tokens": pa.int64(),
        "completion_tokens": pa.int64(),
        "reasoning_tokens": pa.int64(),
        "attempts": pa.int64(),
        "cost": pa.float64(),
    }
    schema = pa.schema([(name, types_by_column.get(name, pa.string())) for name in COLUMNS])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            rows = [_to_flat_row(answer) | {"logprobs": answer.logprobs} for answer in batch]
            writer.write_table(pa.Table.from_pylist(rows, schema))


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """Numbers of imported answers, by the outcome of their import."""

    added: int = 0
    known: int = 0
    """Number of answers that were already in the database."""
    conflicts: int = 0
    """Number of added answers to requests that already have a different answer. The existing answer continues to be
    reused."""
    damaged: int = 0
    """Number of answers skipped because their key does not match the request."""

    def __add__(self, other: "ImportCounts") -> "ImportCounts":
        return ImportCounts(*map(add, astuple(self), astuple(other)))


def import_answers(database: Database, path: Path, on_progress: Callable[[int], None] | None = None) -> ImportCounts:
    """Import a file written by ``records export``, in one transaction.

    Runs that are not in the database are added without configuration and results.

    Args:
        database: Records database.
        path: File with the suffix ``.jsonl`` or ``.parquet``.
        on_progress: Function called with the number of answers processed since its last call.

    Raises:
        InputError: The file cannot be read, or was not written by ``records export``.
    """
    suffix = path.suffix.lower()
    if suffix not in (".jsonl", ".parquet"):
        raise InputError(
            f"{path.name} does not end in .jsonl or .parquet: export in one of these formats (CSV does not "
            "keep texts exactly)."
        )

    def read_rows() -> Iterator[Any]:
        if suffix == ".parquet":
            return _iterate_parquet_rows(path)
        return (parse_json(line) for line in read_lines(path) if line.strip())

    def read_batches() -> Iterator[list[RecordedAnswer]]:
        batch: list[RecordedAnswer] = []
        for number, row in enumerate(read_rows(), start=1):
            try:
                batch.append(_parse_answer(row))
            except ValueError as error:
                raise InputError(
                    f"{path}, answer {number}: this is not a record written by records export "
                    f"({describe_first_problem(error)})."
                ) from None
            if len(batch) == ROWS_PER_BATCH:
                yield batch
                batch = []
        yield batch

    try:
        n_total = sum(1 for _ in read_rows())
    except (UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path} is not a file written by records export ({error}).") from None
    if not n_total:
        raise InputError(f"There are no answers in {path}: it is empty.")

    def add_answers(connection: sa.Connection) -> ImportCounts:
        total_counts = ImportCounts()
        # Ids below all others, so that imported answers are reused last.
        next_id = min(connection.execute(sa.select(sa.func.min(tables.answers.c.id))).scalar() or 0, 0) - n_total
        for batch in read_batches():
            _add_runs(database, connection, batch, path.name)
            total_counts += _add_answers(database, connection, batch, next_id + total_counts.added)
            if on_progress is not None:
                on_progress(len(batch))
        return total_counts

    return database.write(add_answers)


def _iterate_parquet_rows(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_PER_BATCH):
                for row in batch.to_pylist():
                    yield {**row, "settings": parse_json(row["settings"])}
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet ({error}).") from None


def _parse_answer(row: Mapping[str, Any]) -> RecordedAnswer:
    (answer,) = _ANSWER.validate_python((row,))
    if len(bytes.fromhex(answer.key)) != 32:
        raise ValueError("the key of the request does not have 64 hexadecimal digits")
    _parse_timestamp(answer)
    return answer


def _parse_timestamp(answer: RecordedAnswer) -> float:
    return datetime.fromisoformat(answer.answered_at).timestamp()


def _build_identity(answer: RecordedAnswer) -> Identity:
    key = bytes.fromhex(answer.key)
    return Identity(key, answer.kind, answer.model, answer.fingerprint, answer.prompt, canonical_json(answer.settings))


def _add_answers(
    database: Database, connection: sa.Connection, batch: Sequence[RecordedAnswer], first_id: int
) -> ImportCounts:
    """Add the new and valid answers of a batch, with consecutive ids from ``first_id``."""
    identities = {answer.key: _build_identity(answer) for answer in batch}
    valid_keys = {
        key
        for key, identity in identities.items()
        # The key of a prompt with characters that databases cannot store does not match the stored prompt.
        if identity.key_for(identity.fingerprint) == identity.key or REPLACEMENT in identity.prompt
    }
    stored_answers = _load_stored_answers(connection, [identities[key].key for key in valid_keys])
    new_answers: dict[tuple[str, str, str], RecordedAnswer] = {}
    n_known = 0
    for answer in batch:
        if answer.key in valid_keys:
            identifier = (answer.key, answer.run, answer.answered_at)
            n_known += identifier in stored_answers or identifier in new_answers
            if identifier not in stored_answers:
                new_answers.setdefault(identifier, answer)
    reused_contents = {key: content for (key, _, _), content in stored_answers.items() if content is not None}
    conflicting_keys = {
        answer.key
        for answer in new_answers.values()
        if answer.error is None
        and answer.key in reused_contents
        and reused_contents[answer.key] != (answer.text, json.dumps(answer.logprobs))
    }
    insert_requests(database, connection, [identities[answer.key] for answer in new_answers.values()])
    rows = [_to_database_row(answer, first_id + index) for index, answer in enumerate(new_answers.values())]
    if rows:
        connection.execute(tables.answers.insert(), rows)
    n_damaged = sum(answer.key not in valid_keys for answer in batch)
    return ImportCounts(len(rows), n_known, len(conflicting_keys), n_damaged)


def _load_stored_answers(
    connection: sa.Connection, keys: Sequence[bytes]
) -> dict[tuple[str, str, str], tuple[str | None, str] | None]:
    """Return the stored answers to requests, by key, run and time.

    An answer is given as text and log-probabilities, or None for a failure. For each key, the answer that is reused
    comes last.
    """
    answers, contents = tables.answers, {}
    for chunk in split_keys(keys):
        query = sa.select(answers).where(answers.c.request.in_(chunk))
        for row in connection.execute(query.order_by(answers.c.id)):
            logprobs = None if row.logprobs is None else json.loads(row.logprobs)
            content = None if row.error is not None else (row.text, json.dumps(logprobs))
            contents[bytes(row.request).hex(), row.run, format_time(row.answered_at)] = content
    return contents


def _to_database_row(answer: RecordedAnswer, answer_id: int) -> dict[str, Any]:
    names = ("run", "text", "reasoning", "outcome", "error", "prompt_tokens", "completion_tokens", "reasoning_tokens")
    return {name: getattr(answer, name) for name in (*names, "attempts", "cost")} | {
        "id": answer_id,
        "request": bytes.fromhex(answer.key),
        "answered_at": _parse_timestamp(answer),
        "logprobs": None if answer.logprobs is None else json.dumps(answer.logprobs, allow_nan=False),
    }


def _add_runs(database: Database, connection: sa.Connection, batch: Sequence[RecordedAnswer], name: str) -> None:
    timestamps: dict[str, list[float]] = {}
    for answer in batch:
        timestamps.setdefault(answer.run, []).append(_parse_timestamp(answer))
    rows = [
        {
            "id": run,
            "command": "records import",
            "status": "done",
            "version": __version__,
            "config": json.dumps({"file": name}, ensure_ascii=False),
            "seeds": "{}",
            "started_at": min(answer_times),
            "seen_at": max(answer_times),
            "ended_at": max(answer_times),
        }
        for run, answer_times in timestamps.items()
    ]
    database.insert_new(connection, tables.runs, rows)
