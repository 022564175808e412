"""Several collections searched as one: the primer's four books, each a collection, beside one collection of all four.

Every question of the gold set is asked of all books; found is a passage that holds the text the question was made from.
Three ways of ranking are compared: one collection (hybrid search), four ranked together (scores divided by their
greatest ones over all collections), and four whose own hybrid rankings are fused by rank, which gives every collection
a place whether it has something to say or not. Beside recall stands how many passages of other books are among the
first eight, with and without the threshold of relevance that ``climassay ask`` uses.

    python benchmarks/several_collections.py [--json]
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from climassay.corpus import Collection, read
from climassay.corpus.documents import Hit
from climassay.corpus.gold_texts import MIN_GOLD_SHARE, GoldText, LabelledQuestion, read_gold_questions
from climassay.grounding.answer import CollectionGroup
from climassay.models.encoders import load_encoder
from climassay.primer import book_names, book_path, question_paths
from climassay.statistics import bootstrap_interval

SEED = 17
DEPTHS = (1, 4, 8)
Search = Callable[[str], list[Hit]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    questions = [question for path in question_paths() for question in read_gold_questions(path)[0]]
    encoder = load_encoder()
    with tempfile.TemporaryDirectory() as folder:
        whole = Collection.create(Path(folder), "whole", encoder)
        parts, books = [], {}
        for name in book_names():
            documents = read(book_path(name)).documents
            books |= {document.id: name for document in documents}
            whole.add(documents)
            parts.append(Collection.create(Path(folder), name, encoder))
            parts[-1].add(documents)
        group, depth = CollectionGroup(tuple(parts)), max(DEPTHS)
        ways: dict[str, Search] = {
            "one collection": lambda query: whole.search(query, k=depth),
            "four, ranked together": lambda query: group.search_many([query], k=depth)[0],
            "four, ranks fused": lambda query: ranks_fused(parts, query, depth),
            "one collection, relevant passages only": lambda query: CollectionGroup((whole,)).search(query, k=depth),
            "four, ranked together, relevant passages only": lambda query: group.search(query, k=depth),
        }
        rows = {name: measured(questions, search, books) for name, search in ways.items()}
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{len(questions)} questions of the primer's gold set, {len(parts)} books; 95% bootstrap intervals.\n")
    for name, figures in rows.items():
        print(name)
        for what, (value, low, high) in figures.items():
            print(f"    {what}: {value:.3f} ({low:.3f} to {high:.3f})")


def ranks_fused(parts: Sequence[Collection], query: str, depth: int) -> list[Hit]:
    """The first hits of every collection by rank; equals by similarity. Collections share no passage."""
    hits = [hit for part in parts for hit in part.search(query, k=depth)]
    return sorted(hits, key=lambda hit: (hit.rank, -(hit.cosine or 0.0), hit.passage.id))[:depth]


def measured(
    questions: Sequence[LabelledQuestion], search: Search, books: Mapping[str, str]
) -> dict[str, tuple[float, float, float]]:
    """Figures with their intervals over questions; ``books`` tells the book of a document."""
    columns: dict[str, list[float]] = {f"recall@{k}": [] for k in DEPTHS}
    columns["passages shown"] = []
    columns["passages of other books"] = []
    for question in questions:
        hits, gold = search(question.question), GoldText.from_text(question.passage)
        rank = gold.find_rank(hits, MIN_GOLD_SHARE)
        for k in DEPTHS:
            columns[f"recall@{k}"].append(float(rank is not None and rank <= k))
        columns["passages shown"].append(float(len(hits)))
        other = sum(books[hit.passage.document_id] != question.document for hit in hits)
        columns["passages of other books"].append(float(other))
    found = {}
    for name, values in columns.items():
        interval = bootstrap_interval(np.array(values), lambda rows: float(rows.mean()), seed=SEED)
        found[name] = (float(np.mean(values)), interval.low, interval.high)
    return found


if __name__ == "__main__":
    main()
