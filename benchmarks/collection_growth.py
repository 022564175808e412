"""Small additions to a large collection: time and bytes of each, beside compacting at every addition.

Passages are random words, vectors random numbers; no model is asked. In one run and on copies of one collection:

- ``fragment``: an addition writes its own passages; a search or a compaction takes them into the index
- ``compacted``: every addition joins all files, as climassay did before; old versions stay

Then the bytes of the collection after ``climassay corpus compact``, beside those of its vectors and texts, and whether
searches find the same before and after.

Run: python benchmarks/collection_growth.py [--passages 100000] [--additions 5] [--json]
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "corpus"))

from random_passages import RandomEncoder, random_document, random_words

from climassay.corpus import Collection

DOCUMENT = 100
"""Passages of a document."""
QUERIES = [random_words((7, number), 6) for number in range(20)]


def before(table, *_):
    """What an addition ended with."""
    table.optimize()


def additions(folder, count):
    """Median seconds, CPU seconds and bytes of additions of one passage."""
    collection = Collection.open(folder, "c", RandomEncoder())
    spent = []
    for number in range(count):
        size, at, cpu = collection._store.count_bytes("c"), time.perf_counter(), time.process_time()
        collection.add([random_document(1_000_000 + number, 1)])
        at, cpu = time.perf_counter() - at, time.process_time() - cpu
        spent.append((at, cpu, collection._store.count_bytes("c") - size))
    seconds, processor, size = (statistics.median(column) for column in zip(*spent, strict=True))
    return {"seconds": round(seconds, 3), "cpu_seconds": round(processor, 3), "bytes": int(size)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--additions", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, copy = Path(name) / "one", Path(name) / "two"
        collection = Collection.create(folder, "c", RandomEncoder())
        collection.add(random_document(number, DOCUMENT) for number in range(given.passages // DOCUMENT))
        raw = sum(len(text.encode()) + 4 * RandomEncoder.width for texts in collection.texts() for text in texts)
        full = collection._store.count_bytes("c")
        shutil.copytree(folder, copy)
        fragment = additions(folder, given.additions)
        with mock.patch("climassay.corpus.collection.compact_if_fragmented", before):
            compacted = additions(copy, given.additions)
        shutil.rmtree(copy)
        begun = time.perf_counter()
        first = collection.search_many(QUERIES, k=8)
        taking_in = time.perf_counter() - begun
        begun = time.perf_counter()
        done = collection.compact()
        result = {
            "passages": len(collection),
            "fragment": fragment,
            "compacted": compacted,
            "ratio_seconds": round(compacted["seconds"] / fragment["seconds"], 1),
            "ratio_bytes": round(compacted["bytes"] / fragment["bytes"], 1),
            "first_search_seconds": round(taking_in, 2),
            "compaction_seconds": round(time.perf_counter() - begun, 2),
            "bytes_after_bulk_addition": full,
            "bytes_after_compaction": done.bytes_after,
            "bytes_of_vectors_and_texts": raw,
            "share": round(done.bytes_after / raw, 3),
            "same_hits": collection.search_many(QUERIES, k=8) == first,
        }
    if given.json:
        print(json.dumps(result, indent=2))
    else:
        sys.stdout.write("".join(f"{key:28} {value}\n" for key, value in result.items()))


if __name__ == "__main__":
    main()
