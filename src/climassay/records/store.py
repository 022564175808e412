"""The records: one database of everything that was asked, answered and computed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast

import sqlalchemy as sa

from climassay.records import tables
from climassay.records.answers import Answer, answer_from_row
from climassay.records.database import Database
from climassay.records.identity import Kind
from climassay.records.runs import Run

KEYS_PER_QUERY = 500
"""Below the smallest limit of bound parameters of either database."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer without error from the database."""

    id: int
    """Row of ``answers``."""
    answer: Answer


class Records:
    """The durable store of a workspace; open it once a process, close it at the end (or use it in a ``with``).

    Args:
        url: SQLAlchemy URL: ``sqlite:///path`` (a file; write-ahead log) or ``postgresql://user@host/name``.

    Raises:
        RecordsError: The database cannot be opened, is corrupt, or is of a newer climassay.

    Example:
        >>> with Records("sqlite:///records.sqlite") as store:
        ...     with store.run("evaluate mcq", config={"file": "questions.csv"}, seeds={"permutations": 0}) as run:
        ...         model = RecordedModel(load_model("local:smollm2"), store, run)
        ...         completions = model.generate(requests)
        ...         run.save_results("scores", [{"accuracy": 0.5, "n": 2}])
    """

    def __init__(self, url: str) -> None:
        self.database = Database(url)

    def __enter__(self) -> "Records":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, command: str, config: Mapping[str, Any], seeds: Mapping[str, Any] | None = None) -> Run:
        """A new run, to be used in a ``with``.

        Args:
            command: As the user knows it, for example ``evaluate mcq``.
            config: Everything that decides the outcome; API keys found in it are blanked.
            seeds: Every seed by what it is for.
        """
        return Run(self.database, command, config, seeds)

    def look_up(self, keys: Sequence[bytes], model: str | None = None) -> dict[bytes, StoredAnswer]:
        """The newest answer without error to each request that has one.

        Args:
            keys: Keys as in :class:`~climassay.records.identity.Identity`.
            model: Only requests that were stored under this name of a model.
        """
        found: dict[bytes, StoredAnswer] = {}
        answers, requests = tables.answers, tables.requests
        columns = (answers, requests.c.key, requests.c.kind)
        with self.database.read() as connection:
            for start in range(0, len(keys), KEYS_PER_QUERY):
                chunk = keys[start : start + KEYS_PER_QUERY]
                query = (
                    sa.select(*columns)
                    .join(requests, requests.c.key == answers.c.request)
                    .where(answers.c.request.in_(chunk), answers.c.error.is_(None))
                    .order_by(answers.c.id)
                )
                if model is not None:
                    query = query.where(requests.c.model == model)
                for row in connection.execute(query).mappings():
                    answer = answer_from_row(cast(Kind, row["kind"]), cast(Mapping[str, Any], row))
                    found[bytes(row["key"])] = StoredAnswer(row["id"], answer)
        return found

    def fingerprints_among(self, fingerprints: Collection[str]) -> set[str]:
        """Those of some fingerprints under which there are requests."""
        if not fingerprints:
            return set()
        found = sa.select(tables.requests.c.fingerprint).where(tables.requests.c.fingerprint.in_(fingerprints))
        with self.database.read() as connection:
            return set(connection.execute(found.distinct()).scalars())

    def close(self) -> None:
        """Give back the connections."""
        self.database.close()
