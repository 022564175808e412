"""Annotation: what asking for an item and storing a label cost, at a small and at a large dataset.

The measure is a transaction that stores one short row in the same database: nothing that acknowledges a label can be
cheaper. It is done in turns with the rest, so that both meet the same load. Datasets hold drafts of the usual length;
half of the large one is labelled before it is measured. Several annotators label at once in threads of one process, as
in the web application, each waiting for its own answer.

    python benchmarks/annotation.py [--drafts 10000] [--labels 200] [--annotators 8] [--url postgresql://...] [--json]
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from climassay.generation import Draft, Origin, SourcePassage, Wording
from climassay.generation.annotation import AnnotationSettings, AnnotationStore, Label
from climassay.generation.dataset_store import DatasetStore, StoredDraft
from climassay.records import Records
from climassay.reporting import Table
from climassay.reporting.tables import as_markdown

SMALL = 100
UNIT = "store one short row"
WORDS = "The ocean takes up most of the heat that greenhouse gases keep in the climate system. "

Times = dict[str, list[float]]
"""Milliseconds by kind of work."""


@dataclass(frozen=True)
class Row:
    """Milliseconds of one kind of work."""

    database: str
    work: str
    drafts: int
    annotators: int
    median: float
    p95: float
    ratio: float
    """Of the median to that of storing one short row, which the same annotators did in turns with the rest."""


def made(number: int) -> Draft:
    """A draft with a passage of 2000 characters and three more beside it."""
    passages = tuple(SourcePassage(f"p{number}-{n}", (WORDS * 24)[:2000], "book", "A book") for n in range(4))
    origin = Origin("local:benchmark", "f" * 64, (("generate", "a" * 64),), number)
    return Draft(f"q{number:06d}", "freeform", "base", Wording(f"What is {number}?", "Heat."), passages, origin)


def filled(records: Records, dataset: str, count: int) -> AnnotationStore:
    drafts = DatasetStore(records)
    drafts.begin(dataset, {"drafts": count})
    for start in range(0, count, 500):
        numbers = range(start, min(count, start + 500))
        drafts.save(dataset, [StoredDraft(made(number), "book", number) for number in numbers])
    store = AnnotationStore(records)
    store.configure(dataset, AnnotationSettings(overlap=2))
    return store


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


ROWS = sa.Table(
    "benchmark_rows", sa.MetaData(), sa.Column("key", sa.String(80), primary_key=True), sa.Column("at", sa.Float)
)


def store_row(records: Records, key: str) -> None:
    """Store one short row."""
    row = {"key": key, "at": time.time()}
    records.database.write(lambda connection: connection.execute(ROWS.insert(), [row]))


def annotate(records: Records, store: AnnotationStore, dataset: str, annotators: int, labels: int) -> Times:
    """Times by kind of work, of so many annotators at once; everybody stores a short row beside every label."""
    times: Times = {work: [] for work in (UNIT, "next", "label", "progress")}

    def work(who: str) -> None:
        for number in range(labels):
            key = f"{who}-{number}"
            times[UNIT].append(milliseconds(partial(store_row, records, key)))
            start = time.perf_counter()
            item = store.next(dataset, who)
            times["next"].append(1000 * (time.perf_counter() - start))
            if item is None:
                return
            label = Label(item.draft.id, who, accepted=True, seconds=1.0, key=key)
            times["label"].append(milliseconds(partial(store.label, dataset, label)))
            times["progress"].append(milliseconds(partial(store.progress, dataset, who)))

    with ThreadPoolExecutor(annotators) as pool:
        list(pool.map(work, [f"{dataset}-{annotators}-{number}" for number in range(annotators)]))
    return times


def measure(records: Records, drafts: int, labels: int, annotators: int) -> list[Row]:
    name = "SQLite" if records.database.is_sqlite else "PostgreSQL"
    records.database.create_tables(ROWS.metadata)
    small, large = filled(records, "small", SMALL), filled(records, "large", drafts)
    for number in range(2):
        half_label(large, "large", f"before-{number}", drafts // 2)
    rows = []
    for store, dataset, size, people, count in (
        (small, "small", SMALL, 1, min(labels, SMALL)),
        (large, "large", drafts, 1, labels),
        (large, "large", drafts, annotators, max(1, labels // annotators)),
    ):
        times = annotate(records, store, dataset, people, count)
        unit = float(np.median(times[UNIT]))
        for work, spent in times.items():
            median, p95 = (float(np.quantile(spent, share)) for share in (0.5, 0.95))
            rows.append(Row(name, work, size, people, median, p95, median / unit))
    return rows


def half_label(store: AnnotationStore, dataset: str, who: str, count: int) -> None:
    """Label many items as one annotator, in the way of the command that imports labels."""
    items = [f"q{number:06d}" for number in range(count)]
    store.import_labels(dataset, [Label(draft, who, True, key=f"{who}-{draft}") for draft in items])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drafts", type=int, default=10_000)
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--annotators", type=int, default=8)
    parser.add_argument("--url", help="a PostgreSQL database to measure as well, empty")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="climassay-") as folder, ExitStack() as stack:
        urls = [f"sqlite:///{Path(folder) / 'records.sqlite'}", *([given.url] if given.url else [])]
        for url in urls:
            rows += measure(stack.enter_context(Records(url)), given.drafts, given.labels, given.annotators)
    if given.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return 0
    columns = ("database", "work", "drafts", "annotators at once", "median, ms", "p95, ms", "ratio")
    cells = [
        (
            row.database,
            row.work,
            str(row.drafts),
            str(row.annotators),
            f"{row.median:.1f}",
            f"{row.p95:.1f}",
            f"{row.ratio:.1f}",
        )
        for row in rows
    ]
    print(as_markdown(Table.of("Annotation", columns, cells, left_columns=2)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
