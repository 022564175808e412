"""Search: latency and recall of hybrid search against dense and BM25, and exact search against vector indexes.

One collection holds all paragraphs of IPCC AR6 (58 chapters and summaries), the 181 abstracts of Pira 2 and the
primer's four books, so that every question is asked among 12,500 passages. Four sets of labelled questions:

* ``statements``: AR6 statements of the ClimateX dataset, without their confidence, that stand in the paragraphs word
  for word. A known-item search whose query is a quotation: it favours BM25.
* ``questions``: questions that people wrote about the abstracts of Pira 2, with the abstract before them.
* ``paraphrases``: the same questions in other words, as other people put them for Pira 2.
* ``primer``: the questions of the primer's gold set, by their verbatim passage.

The weight of the cosine in hybrid search was chosen on these same questions; it is one number, and flat around its
value (last table: mean reciprocal rank by weight).

Latency is measured one query at a time on the loaded collection, modes in turn, the encoding of the query included.
The vector indexes of LanceDB are built on a copy of the vectors; their recall is the share of the exact first ten.

    python benchmarks/search.py [--data ../shared/data] [--workspace FOLDER] [--queries 400] [--json]

The first run makes the collection (some minutes on two cores); it is kept for the next ones in the cache folder.
"""

import argparse
import csv
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climassay.corpus.collection import Collection
from climassay.corpus.collection_storage import to_matrix
from climassay.corpus.documents import Block, Document
from climassay.corpus.gold_texts import GoldText, LabelledQuestion, locate_gold_texts, read_gold_questions, split_words
from climassay.corpus.readers.file_types import read
from climassay.corpus.retrieval_evaluation import RetrievalReport, evaluate_retrieval
from climassay.corpus.search import SEARCH_MODES, Searcher, limit_to_one_thread
from climassay.models.encoders import load_encoder
from climassay.primer import book_names, book_path, question_paths
from climassay.reporting.tables import as_markdown
from climassay.workspace import cache_folder

SEED = 20240609
LATENCY_QUERIES = 200
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0)


@dataclass(frozen=True)
class Latency:
    """Milliseconds a query, the encoding of the query included."""

    mode: str
    p50: float
    p95: float


@dataclass(frozen=True)
class VectorSearch:
    """A way of finding the nearest vectors, without the encoding of the query."""

    name: str
    p50: float
    """Milliseconds a query."""
    p95: float
    recall: float
    """Share of the exact first ten that it finds."""


def documents(data: Path) -> Iterator[Document]:
    yield from read(data / "ipcc_ar6_paragraphs.jsonl.gz").documents
    for name in book_names():
        yield from read(book_path(name)).documents
    abstracts = {row["abstract"] for row in pira_rows(data)}
    for number, abstract in enumerate(sorted(abstracts)):
        yield Document(f"pira-{number:03d}", f"Pira abstract {number}", "pira_qa.csv", (Block(abstract),))


def pira_rows(data: Path) -> list[dict[str, str]]:
    with (data / "pira_qa.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def make_collection(data: Path, folder: Path) -> Collection:
    """The collection; what an earlier run has stored is not embedded again."""
    collection = Collection.create(folder, "search-benchmark", load_encoder())
    start = time.perf_counter()
    report = collection.add(documents(data))
    if report.passages:
        spent = time.perf_counter() - start
        print(
            f"embedded {report.passages:,} passages in {spent:.0f} s, {report.passages / spent:.0f}/s", file=sys.stderr
        )
    return collection


def statements(collection: Collection, data: Path, count: int) -> list[LabelledQuestion]:
    """Statements of ClimateX that stand in the collection as they are."""
    with (data / "climatex_train.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = sorted({row["statement"] for row in rows if len(split_words(row["statement"])) >= 8})
    chosen = random.Random(SEED).sample(texts, min(2 * count, len(texts)))
    there = locate_gold_texts([GoldText.from_text(text) for text in chosen], collection.texts())
    kept = [text for text, located in zip(chosen, there, strict=True) if located][:count]
    return [LabelledQuestion(text, text, f"climatex-{number}") for number, text in enumerate(kept)]


def question_sets(collection: Collection, data: Path, count: int) -> dict[str, list[LabelledQuestion]]:
    def pira(column: str) -> list[LabelledQuestion]:
        rows = [row for row in pira_rows(data) if row[column].strip()]
        return [LabelledQuestion(row[column], row["abstract"], f"pira-{row['id_qa']}") for row in rows]

    return {
        "statements": statements(collection, data, count),
        "questions": pira("question_en_origin"),
        "paraphrases": pira("question_en_paraphase"),
        "primer": [question for path in question_paths() for question in read_gold_questions(path)[0]],
    }


def timed(work: Callable[[Any], Any], items: Sequence[Any]) -> tuple[float, float]:
    """50th and 95th percentile of milliseconds an item."""
    spent = []
    for item in items:
        start = time.perf_counter()
        work(item)
        spent.append(1000 * (time.perf_counter() - start))
    p50, p95 = np.percentile(spent, [50, 95])
    return float(p50), float(p95)


def latencies(collection: Collection, queries: Sequence[str]) -> list[Latency]:
    for mode in SEARCH_MODES:
        collection.search(queries[0], mode=mode)
    return [
        Latency(mode, *timed(lambda q, m=mode: collection.search(q, k=8, mode=m), queries)) for mode in SEARCH_MODES
    ]


def vector_searches(collection: Collection, queries: Sequence[str]) -> list[VectorSearch]:
    """Exact search in memory and on disk, and LanceDB's indexes, on the same vectors and queries."""
    import lancedb
    from lancedb.index import HnswSq, IvfPq

    rows = collection._table.search().select(["id", "vector"]).limit(None).to_arrow()
    matrix = to_matrix(rows["vector"], collection.settings.width)
    vectors = collection.encoder.encode(queries, role="query")
    exact = [set(np.argsort(-(matrix @ vector), kind="stable")[:10]) for vector in vectors]
    numbered = rows.append_column("row", [list(range(len(rows)))])
    folder = tempfile.mkdtemp()
    try:
        database = lancedb.connect(folder)
        found = [measure_vectors("exact, in memory", lambda v: in_memory(matrix, v), vectors, exact)]
        indexes = {
            "exact, LanceDB scan": None,
            "IVF-PQ": IvfPq(distance_type="dot"),
            "HNSW-SQ": HnswSq(distance_type="dot"),
        }
        for name, index in indexes.items():
            table = database.create_table("vectors", numbered, mode="overwrite")
            if index is not None:
                table.create_index("vector", config=index)
            found.append(measure_vectors(name, lambda v, t=table: nearest(t, v), vectors, exact))
        return found
    finally:
        shutil.rmtree(folder)


def in_memory(matrix: Any, vector: Any) -> Any:
    with limit_to_one_thread():
        return np.argpartition(matrix @ vector, -10)[-10:]


def nearest(table: Any, vector: Any) -> list[int]:
    found = table.search(vector).distance_type("dot").select(["row", "_distance"]).limit(10)
    return found.to_arrow()["row"].to_pylist()


def measure_vectors(name: str, find: Callable[[Any], Any], vectors: Any, exact: Sequence[set[int]]) -> VectorSearch:
    find(vectors[0])
    p50, p95 = timed(find, vectors)
    shares = [len(best & {int(row) for row in find(vector)}) / 10 for vector, best in zip(vectors, exact, strict=True)]
    return VectorSearch(name, p50, p95, float(np.mean(shares)))


def by_weight(
    collection: Collection, sets: dict[str, list[LabelledQuestion]], weights: Sequence[float]
) -> dict[float, dict[str, float]]:
    """Mean reciprocal rank of each set for each weight of the cosine in hybrid search."""
    found: dict[float, dict[str, float]] = {}
    for weight in weights:
        weighted = Collection.open(collection._store.address, collection.name, collection.encoder)
        weighted._searcher = Searcher(collection._table, collection.settings.width, dense_weight=weight)
        reports = {name: evaluate_retrieval(weighted, questions, modes=["hybrid"]) for name, questions in sets.items()}
        found[weight] = {name: report.modes[0].mrr.value for name, report in reports.items()}
    return found


def show(
    reports: dict[str, RetrievalReport],
    modes: list[Latency],
    vectors: list[VectorSearch],
    weights: dict[float, dict[str, float]],
) -> None:
    for name, report in reports.items():
        print(as_markdown(report.tables()[0]).replace(f"Retrieval from {report.collection}", name))
    print(f"{'mode':22} {'p50 ms':>8} {'p95 ms':>8}")
    for latency in modes:
        print(f"{latency.mode:22} {latency.p50:8.1f} {latency.p95:8.1f}")
    print(f"\n{'nearest vectors':22} {'p50 ms':>8} {'p95 ms':>8} {'recall@10':>10}")
    for found in vectors:
        print(f"{found.name:22} {found.p50:8.2f} {found.p95:8.2f} {found.recall:10.3f}")
    print("\nMRR@10 by weight  " + " ".join(f"{name:>12}" for name in reports))
    for weight, values in weights.items():
        print(f"{weight:<17.2f} " + " ".join(f"{value:12.3f}" for value in values.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Search: latency, and recall of hybrid, dense and BM25.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with the AR6 paragraphs")
    parser.add_argument("--workspace", type=Path, help="where the collection is kept; by default in the cache folder")
    parser.add_argument("--queries", type=int, default=400, help="statements of ClimateX to search for")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not (arguments.data / "ipcc_ar6_paragraphs.jsonl.gz").exists():
        sys.exit(f"There is no ipcc_ar6_paragraphs.jsonl.gz in {arguments.data}; name its folder with --data.")
    collection = make_collection(arguments.data, arguments.workspace or cache_folder() / "benchmarks")
    sets = question_sets(collection, arguments.data, arguments.queries)
    reports = {name: evaluate_retrieval(collection, questions) for name, questions in sets.items()}
    queries = [question.question for questions in sets.values() for question in questions]
    queries = random.Random(SEED).sample(queries, min(LATENCY_QUERIES, len(queries)))
    modes, vectors = latencies(collection, queries), vector_searches(collection, queries)
    weights = by_weight(collection, sets, WEIGHTS)
    if arguments.json:
        rows = {name: asdict(report) for name, report in reports.items()}
        told = {
            "recall": rows,
            "latency": [asdict(x) for x in modes],
            "vectors": [asdict(x) for x in vectors],
            "mrr_by_weight": weights,
        }
        print(json.dumps(told, indent=2))
    else:
        show(reports, modes, vectors, weights)


if __name__ == "__main__":
    main()
