"""Making a collection is interrupted, by a full disk or a kill, and done again."""

import pytest

from climassay.corpus.collection import Collection, list_collections, open_or_create
from climassay.corpus.collection_storage import CollectionStore, DamagedCollectionError
from climassay.corpus.documents import Block, Document
from climassay.errors import InputError

KEY = b"lance-schema:unenforced-primary-key:position"


def test_what_was_interrupted_before_its_first_version_is_none_yet(tmp_path):
    for part in ("_versions", "_transactions"):
        (tmp_path / "ice.lance" / part).mkdir(parents=True)
    (tmp_path / "ice.lance" / "_transactions" / "0-a.txn").write_bytes(b"begun")
    assert list_collections(tmp_path) == []
    with pytest.raises(InputError, match="There is no collection 'ice'"):
        Collection.open(tmp_path, "ice")
    collection = open_or_create(tmp_path, "ice")
    collection.add([Document("d", "Report", "r.txt", (Block("The glacier lost ice.", chapter="1"),))])
    assert len(Collection.open(tmp_path, "ice")) == 1


def test_a_collection_that_lost_its_versions_is_damaged_and_not_begun_anew(tmp_path):
    collection = open_or_create(tmp_path, "ice")
    collection.add([Document("d", "Report", "r.txt", (Block("The glacier lost ice.", chapter="1"),))])
    for file in (tmp_path / "ice.lance" / "_versions").iterdir():
        file.unlink()
    with pytest.raises(DamagedCollectionError):
        open_or_create(tmp_path, "ice")


def test_the_key_that_an_interrupted_making_did_not_set_is_set_by_the_next(tmp_path, monkeypatch):
    store = CollectionStore.at(tmp_path)
    whole = open_or_create(tmp_path, "whole")
    assert KEY in whole._table.schema.field("id").metadata

    import lancedb.table

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(lancedb.table.LanceTable, "set_unenforced_primary_key", killed)
        with pytest.raises(KeyboardInterrupt):
            store.create("half", whole.settings)
    assert KEY not in (store.open("half").schema.field("id").metadata or {})
    assert KEY in store.create("half", whole.settings).schema.field("id").metadata
