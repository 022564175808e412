"""Small additions leave the rest of a collection alone; a compaction changes its files and nothing that is found."""

import sys
from pathlib import Path

import pytest

from climassay.corpus import Collection
from climassay.corpus.collection_storage import MAX_FILES, MAX_UNINDEXED
from climassay.corpus.guarded_table import GuardedTable
from climassay.corpus.search import SEARCH_MODES

sys.path.insert(0, str(Path(__file__).parent))
from random_passages import RandomEncoder, random_document, random_words

QUERIES = [random_words((7, number), 5) for number in range(12)]


@pytest.fixture
def large(tmp_path):
    """Large enough for an addition of a passage to be small."""
    made = Collection.create(tmp_path, "c", RandomEncoder())
    made.add(random_document(number, 100, words=30) for number in range(10))
    return made


def files(collection, *parts):
    """Size by path of the collection's files, or of those in some of its folders."""
    folder = Path(collection._store.address) / f"{collection.name}.lance"
    found = {path.relative_to(folder): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    return {path: size for path, size in found.items() if not parts or path.parts[0] in parts}


def found(collection):
    return {
        mode: [[(hit.passage.id, hit.score, hit.cosine) for hit in hits] for hits in some]
        for mode in SEARCH_MODES
        for some in [collection.search_many(QUERIES, k=8, mode=mode)]
    }


def test_a_small_addition_writes_what_is_added_and_rewrites_nothing(large):
    before = files(large)
    for number in range(100, 105):
        large.add([random_document(number, 1, words=30)])
    after = files(large)
    assert before.items() <= after.items() | {(path, before[path]) for path in before if path.name.endswith(".json")}
    new = {path: size for path, size in files(large, "data", "_indices").items() if path not in before}
    assert len(new) == 5
    assert sum(new.values()) < 0.1 * sum(files(large, "data").values())


def test_hits_are_the_same_before_and_after_a_compaction_and_in_a_collection_made_at_once(large, tmp_path):
    for number in range(100, 110):
        large.add([random_document(number, 1, words=30)])
    before = found(large)
    large.compact()
    assert found(large) == before
    at_once = Collection.create(tmp_path / "other", "c", RandomEncoder())
    at_once.add([random_document(number, 100, words=30) for number in range(10)] + [
        random_document(number, 1, words=30) for number in range(100, 110)
    ])  # fmt: skip
    assert found(at_once) == before


def test_a_compaction_leaves_one_version_one_file_and_no_more_bytes_than_needed(large):
    for number in range(100, 110):
        large.add([random_document(number, 1, words=30)])
    done = large.compact()
    assert done.bytes_after == sum(files(large).values()) < done.bytes_before
    assert len(files(large, "data")) == 1
    assert len(large._table.list_versions()) == 1
    rows = large._table.search().select(["text"]).limit(None).to_arrow()["text"].to_pylist()
    raw = sum(len(text.encode()) + 4 * RandomEncoder.width for text in rows)
    assert done.bytes_after <= 1.5 * raw


def test_many_small_additions_compact_by_themselves(large, monkeypatch):
    monkeypatch.setattr("climassay.corpus.collection_storage.MAX_FILES", 4)
    for number in range(100, 112):
        large.add([random_document(number, 1, words=30)])
        assert len(files(large, "data")) <= 5
    assert MAX_FILES > 4


def test_a_search_for_words_takes_small_additions_into_the_index(large):
    large.add([random_document(300, 1, words=30)])
    assert large._table.index_stats("text_idx").num_unindexed_rows == 1 <= MAX_UNINDEXED
    large.search(QUERIES[0], mode="dense")
    assert large._table.index_stats("text_idx").num_unindexed_rows == 1
    large.search(QUERIES[0], mode="bm25")
    assert large._table.index_stats("text_idx").num_unindexed_rows == 0


def test_who_reads_passage_by_passage_is_not_disturbed(large):
    reader = large.iterate_passages(batch_size=16)
    read = [next(reader).id]
    large.add([random_document(400, 60, words=30)])
    large.compact()
    assert len(large._table.list_versions()) > 1
    read += [passage.id for passage in reader]
    assert len(read) == len(set(read)) == 1000
    large.compact()
    assert len(large._table.list_versions()) == 1


def test_another_process_that_looks_up_something_finds_the_newer_version(large):
    other = Collection.open(Path(large._store.address), "c", RandomEncoder())
    expected = other.search(QUERIES[0])
    query = other._table.search().where("document_id = 'd3'").select(["id"]).limit(None)
    large.add([random_document(500, 60, words=30)])
    large.remove("d9")
    large.compact()
    assert len(query.to_arrow()) == 100
    assert len(other.search(QUERIES[0])) == len(expected)


def test_a_file_that_a_compaction_removed_meanwhile_is_no_damage():
    class Table:
        calls = 0

        def count_rows(self):
            self.calls += 1
            if self.calls == 1:
                raise OSError("lance error: Not found: c.lance/data/1.lance")
            return 3

    assert GuardedTable(Table(), "c", "/nowhere").count_rows() == 3
