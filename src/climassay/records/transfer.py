"""Export recorded answers to a file, and import such a file.

Importing changes no stored answer: an answer with the same request, run and time is not stored again, and if both have
answered a request, the answer that was stored here is still the one served.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from datetime import datetime
from operator import add
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from climassay import __version__
from climassay.errors import InputError
from climassay.io import atomic_path, parse_json, read_lines, safe_cell
from climassay.records import tables
from climassay.records.database import Database, chunks
from climassay.records.queries import ROWS_AT_ONCE, RecordedAnswer, iso_time, iterate_answers
from climassay.records.store import REPLACEMENT, Identity, Kind, canonical_json, insert_requests

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
        InputError: The ending is not one of these, or the file cannot be written.
        RecordsError: There is no such run.
    """
    writers = {".jsonl": _write_jsonl, ".csv": _write_csv, ".parquet": _write_parquet}
    write = writers.get(path.suffix.lower())
    if write is None:
        raise InputError(f"{path.name} does not end in .jsonl, .csv or .parquet: choose one of these formats.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent}: choose another place.")
    written = 0

    def counted() -> Bundles:
        nonlocal written
        for bundle in iterate_answers(database, run):
            yield bundle
            written += len(bundle)
            if on_progress is not None:
                on_progress(len(bundle))

    with atomic_path(path) as part:
        write(part, counted())
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


@dataclass(frozen=True, slots=True)
class MergedAnswers:
    """What became of answers of other records."""

    added: int = 0
    known: int = 0
    """There already."""
    conflicts: int = 0
    """Answers added to a request that had another answer here, which is still served."""
    damaged: int = 0
    """Left out: the key is not that of the request."""

    def __add__(self, other: "MergedAnswers") -> "MergedAnswers":
        return MergedAnswers(*map(add, astuple(self), astuple(other)))


def import_answers(database: Database, path: Path, on_progress: Callable[[int], None] | None = None) -> MergedAnswers:
    """Take in the answers of a file that ``records export`` wrote, in one transaction.

    A run that is not known here is entered as one that was imported, without its configuration and results.
    ``on_progress`` is called with the number of answers looked at since the last call.

    Raises:
        InputError: The file cannot be read or is no such export.
    """
    ending = path.suffix.lower()
    if ending not in (".jsonl", ".parquet"):
        raise InputError(
            f"{path.name} does not end in .jsonl or .parquet: export in one of these formats (CSV does not "
            "keep texts exactly)."
        )

    def rows() -> Iterator[Any]:
        if ending == ".parquet":
            return _from_parquet(path)
        return (parse_json(line) for line in read_lines(path) if line.strip())

    def bundles() -> Iterator[list[RecordedAnswer]]:
        bundle: list[RecordedAnswer] = []
        for number, row in enumerate(rows(), start=1):
            try:
                bundle.append(_answer(row))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"{path}, answer {number}: this is not a record written by records export ({error})."
                ) from None
            if len(bundle) == ROWS_AT_ONCE:
                yield bundle
                bundle = []
        yield bundle

    try:
        total = sum(1 for _ in rows())
    except (UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path} is not a file written by records export ({error}).") from None
    if not total:
        raise InputError(f"There are no answers in {path}: it is empty.")

    def work(connection: sa.Connection) -> MergedAnswers:
        results = MergedAnswers()
        for bundle in bundles():
            _add_stub_runs(database, connection, bundle, path.name)
            results += _add_answers(database, connection, [bundle], total, on_progress)
        return results

    return database.write(work)


def _from_parquet(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    yield {**row, "settings": parse_json(row["settings"])}
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet ({error}).") from None


def _answer(row: Mapping[str, Any]) -> RecordedAnswer:
    answer = RecordedAnswer(**row)
    texts = (answer.run, answer.model, answer.fingerprint, answer.prompt, answer.outcome)
    if not all(isinstance(text, str) for text in texts) or not isinstance(answer.settings, Mapping):
        raise TypeError("a field has the wrong type")
    if len(bytes.fromhex(answer.key)) != 32 or answer.kind not in ("generate", "options"):
        raise ValueError("the key or kind of a request is missing")
    for count in (answer.prompt_tokens, answer.completion_tokens, answer.reasoning_tokens, answer.attempts):
        if not isinstance(count, int):
            raise TypeError("a count is not a number")
    _moment(answer)
    return answer


def _moment(answer: RecordedAnswer) -> float:
    return datetime.fromisoformat(answer.answered_at).timestamp()


def _identity(answer: RecordedAnswer) -> Identity:
    key, kind = bytes.fromhex(answer.key), cast(Kind, answer.kind)
    return Identity(key, kind, answer.model, answer.fingerprint, answer.prompt, canonical_json(answer.settings))


def _add_answers(
    database: Database,
    connection: sa.Connection,
    bundles: Bundles,
    most: int,
    on_progress: Callable[[int], None] | None,
) -> MergedAnswers:
    """Add at most so many answers, the oldest first, under numbers below all others: one's own stay the newest."""
    lowest = connection.execute(sa.select(sa.func.min(tables.answers.c.id))).scalar()
    number = min(lowest or 0, 0) - most
    results = MergedAnswers()
    for bundle in bundles:
        identities = {answer.key: _identity(answer) for answer in bundle}
        sound = {
            key
            for key, one in identities.items()
            if one.key_under(one.fingerprint) == one.key or REPLACEMENT in one.prompt  # what databases cannot hold
        }
        there = _answers_there(connection, [identities[key].key for key in sound])
        new: dict[tuple[str, str, str], RecordedAnswer] = {}
        known = 0
        for answer in bundle:
            if answer.key in sound:
                place = (answer.key, answer.run, answer.answered_at)
                known += place in there or place in new
                if place not in there:
                    new.setdefault(place, answer)
        said = {key: content for (key, _, _), content in there.items() if content is not None}
        differing = {
            answer.key
            for answer in new.values()
            if answer.error is None
            and answer.key in said
            and said[answer.key] != (answer.text, json.dumps(answer.logprobs))
        }
        insert_requests(database, connection, [identities[answer.key] for answer in new.values()])
        rows = [_row(answer, number + place) for place, answer in enumerate(new.values())]
        number += len(rows)
        if rows:
            connection.execute(tables.answers.insert(), rows)
        damaged = sum(answer.key not in sound for answer in bundle)
        results += MergedAnswers(len(rows), known, len(differing), damaged)
        if on_progress is not None:
            on_progress(len(bundle))
    return results


def _answers_there(
    connection: sa.Connection, keys: Sequence[bytes]
) -> dict[tuple[str, str, str], tuple[str | None, str] | None]:
    """What answers requests have, by key, run and time; None for a failure. The one that is served comes last."""
    answers, result = tables.answers, {}
    for chunk in chunks(keys):
        query = sa.select(answers).where(answers.c.request.in_(chunk))
        for row in connection.execute(query.order_by(answers.c.id)):
            logprobs = None if row.logprobs is None else json.loads(row.logprobs)
            content = None if row.error is not None else (row.text, json.dumps(logprobs))
            result[bytes(row.request).hex(), row.run, iso_time(row.answered_at)] = content
    return result


def _row(answer: RecordedAnswer, number: int) -> dict[str, Any]:
    names = ("run", "text", "reasoning", "outcome", "error", "prompt_tokens", "completion_tokens", "reasoning_tokens")
    return {name: getattr(answer, name) for name in (*names, "attempts", "cost")} | {
        "id": number,
        "request": bytes.fromhex(answer.key),
        "answered_at": _moment(answer),
        "logprobs": None if answer.logprobs is None else json.dumps(answer.logprobs, allow_nan=False),
    }


def _add_stub_runs(database: Database, connection: sa.Connection, bundle: Sequence[RecordedAnswer], name: str) -> None:
    moments: dict[str, list[float]] = {}
    for answer in bundle:
        moments.setdefault(answer.run, []).append(_moment(answer))
    rows = [
        {
            "id": run,
            "command": "records import",
            "status": "done",
            "version": __version__,
            "config": json.dumps({"file": name}, ensure_ascii=False),
            "seeds": "{}",
            "started_at": min(at),
            "seen_at": max(at),
            "ended_at": max(at),
        }
        for run, at in moments.items()
    ]
    database.insert_new(connection, tables.runs, rows)
