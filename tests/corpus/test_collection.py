"""Collections: what is added stays, once; what differs is refused; what is removed is gone."""

import json

import pyarrow as pa
import pytest

from climassay import load_encoder
from climassay.corpus import (
    Block,
    Collection,
    Document,
    OmittedParts,
    list_collections,
    open_or_create,
    read,
    remove_collection,
)
from climassay.corpus import collection as collections
from climassay.corpus.collection_storage import METADATA_KEY, CollectionStore
from climassay.corpus.guarded_table import DamagedCollectionError
from climassay.errors import InputError
from climassay.primer import book_path


@pytest.fixture(scope="module")
def encoder():
    return load_encoder()


@pytest.fixture(scope="module")
def book():
    (document,) = read(book_path("contrarian_pamphlet")).documents
    return document


@pytest.fixture
def collection(tmp_path, encoder):
    return Collection.create(tmp_path, "ocean", encoder)


def document(number: int, *texts: str, **fields) -> Document:
    """A document with one passage a text (chapters keep them apart)."""
    blocks = tuple(Block(text, chapter=f"Chapter {part}", page=part + 1) for part, text in enumerate(texts))
    return Document(f"d{number}", f"Title {number}", f"file{number}.pdf", blocks, **fields)


class CountingEncoder:
    """The bundled encoder under another name or fingerprint, counting the texts it works on."""

    def __init__(self, encoder, name="local:minilm", fingerprint=None):
        self._encoder = encoder
        self.name = name
        self.fingerprint = fingerprint or encoder.fingerprint
        self.width = encoder.width
        self.texts = []

    def encode(self, texts, *, role="passage", on_progress=None):
        self.texts += texts
        return self._encoder.encode(texts, role=role, on_progress=on_progress)


def test_all_that_a_source_tells_is_kept(collection):
    block = Block(
        "The sea is salt; it's 3.5 % by mass.", 12, 13, ("Part I", "Salt"), "p-7", "Chapter 2", "https://example.org/#7"
    )
    given = Document(
        "id'1", "Seas' “title”", "sea.pdf", (block,), "https://example.org", "WG1", "2021-08-09", "2nd", "CC BY 4.0",
        "pdf",
    )  # fmt: skip
    collection.add([given])
    passage = collection.passage("id'1-0")
    assert passage.text == block.text
    assert passage.headings == ("Part I", "Salt")
    assert passage.paragraph_ids == ("p-7",)
    assert (passage.document, passage.source, passage.report) == ("Seas' “title”", "sea.pdf", "WG1")
    assert (passage.date, passage.edition, passage.licence) == ("2021-08-09", "2nd", "CC BY 4.0")
    assert passage.chapter == "Chapter 2"
    (stored,) = collection.documents()
    assert (stored.id, stored.licence, stored.passages, stored.complete) == ("id'1", "CC BY 4.0", 1, True)
    assert collection.remove("Seas' “title”") == (stored,)
    assert len(collection) == 0


def test_adding_twice_changes_nothing(tmp_path, encoder, book):
    counting = CountingEncoder(encoder)
    collection = Collection.create(tmp_path, "twice", counting)
    first = collection.add([book, book])
    assert [item.id for item in first.added] == [book.id]
    before, embedded = collection._table.to_arrow().sort_by("id"), len(counting.texts)
    second = collection.add([book])
    assert (second.added, second.passages, [item.id for item in second.already_there]) == ((), 0, [book.id])
    assert collection._table.to_arrow().sort_by("id").equals(before)
    assert len(counting.texts) == embedded == first.passages


def test_what_was_left_out_of_documents_is_reported(collection):
    references = (OmittedParts("references", 12, (7, 8, 9)), OmittedParts("tables", 1, (3,)))
    listed, plain = document(1, "Sea level rose.", omitted_parts=references), document(2, "Ice melts.")
    report = collection.add([listed, plain])
    assert report.omitted_parts == {listed.id: references}
    [line] = [line for line in report.lines() if line.startswith("left out")]
    assert all(words in line for words in (listed.title, "12 references (pages 7 to 9)", "1 table (page 3)"))
    assert report.to_dict()["omitted_parts"][listed.id][0] == {"kind": "references", "count": 12, "pages": [7, 8, 9]}
    assert {row["id"]: bool(row["omitted_parts"]) for row in report.rows()} == {listed.id: True, plain.id: False}
    assert collection.add([listed]).omitted_parts == {listed.id: references}


def test_a_changed_document_is_another_one_and_is_told(collection):
    old, new = document(1, "Sea level rose by 3 mm a year."), document(1, "Sea level rose by 4 mm a year.")
    new = Document("d1-new", new.title, new.source, new.blocks)
    collection.add([old, document(2, "Something else entirely.")])
    report = collection.add([new])
    assert [item.id for item in report.added] == ["d1-new"]
    assert [item.id for item in report.other_versions] == ["d1"]
    assert report.replaced == ()
    assert {item.id for item in collection.documents()} == {"d1", "d1-new", "d2"}


def test_replacing_takes_out_older_versions_only(collection):
    old = document(1, "Sea level rose by 3 mm a year.")
    collection.add([old, document(2, "Something else entirely.")])
    new = Document("d1-new", old.title, old.source, document(1, "Sea level rose by 4 mm a year.").blocks)
    report = collection.add([new], replace=True)
    assert [item.id for item in report.replaced] == ["d1"]
    assert {item.id for item in collection.documents()} == {"d1-new", "d2"}
    assert [hit.passage.document_id for hit in collection.search("How fast did sea level rise?", k=1)] == ["d1-new"]


def test_documents_are_read_one_after_the_other(collection, monkeypatch):
    """No more documents are held than a chunk of passages needs."""
    monkeypatch.setattr(collections, "CHUNK_PASSAGES", 2)
    stored_when_read = []

    def stream():
        for number in range(5):
            stored_when_read.append(len(collection))
            yield document(number, f"Text {number} on ice.", f"Text {number} on snow.")

    collection.add(stream())
    assert stored_when_read == [0, 2, 4, 6, 8]


def test_another_encoder_is_refused(tmp_path, encoder, collection):
    collection.add([document(1, "Ice melts.")])
    with pytest.raises(InputError, match="made with the encoder local:minilm, not with local:other"):
        Collection.open(tmp_path, "ocean", CountingEncoder(encoder, "local:other", "0" * 64))
    with pytest.raises(InputError, match="weights or settings have changed"):
        Collection.create(tmp_path, "ocean", CountingEncoder(encoder, fingerprint="0" * 64))


def test_an_encoder_whose_weights_have_changed_is_refused_at_search_and_adding(tmp_path, encoder):
    Collection.create(tmp_path, "old", CountingEncoder(encoder, fingerprint="0" * 64))
    opened = Collection.open(tmp_path, "old")
    for use in (lambda: opened.search("ice"), lambda: opened.add([document(1, "Ice melts.")])):
        with pytest.raises(InputError, match="weights or settings have changed"):
            use()


def test_other_passage_settings_are_refused(tmp_path, encoder, collection):
    with pytest.raises(InputError, match="not 1000 and 200"):
        Collection.create(tmp_path, "ocean", encoder, passage_size=1000)
    with pytest.raises(InputError, match="too small"):
        Collection.create(tmp_path, "new", encoder, passage_size=10)
    assert CollectionStore.at(tmp_path).names() == ["ocean"]


@pytest.mark.parametrize("name", ["", "a/b", "../up", "with space", "é", "-x", "x" * 64, "a.b"])
def test_a_name_that_is_none_is_refused(tmp_path, encoder, name):
    with pytest.raises(InputError, match="cannot name a collection"):
        Collection.create(tmp_path, name, encoder)
    with pytest.raises(InputError, match="cannot name a collection"):
        Collection.open(tmp_path, name)


def test_a_missing_collection_is_told_with_those_that_are_there(tmp_path, collection):
    with pytest.raises(InputError, match=r"no collection 'sea'.*there are ocean"):
        Collection.open(tmp_path, "sea")
    with pytest.raises(InputError, match=r"there are none yet"):
        Collection.open(tmp_path / "nothing", "sea")
    assert not (tmp_path / "nothing").exists()


def test_a_foreign_table_is_told_and_not_listed(tmp_path, collection):
    import lancedb

    lancedb.connect(str(tmp_path)).create_table("foreign", pa.table({"x": [1]}))
    with pytest.raises(InputError, match="was not made by this version"):
        Collection.open(tmp_path, "foreign")
    assert [summary.name for summary in list_collections(tmp_path)] == ["ocean"]


def test_a_later_layout_is_told(tmp_path, collection):
    schema = collection._table.schema
    settings = json.loads(schema.metadata[METADATA_KEY]) | {"format": 99}
    later = schema.with_metadata({METADATA_KEY: json.dumps(settings)})
    import lancedb

    lancedb.connect(str(tmp_path)).create_table("later", schema=later)
    with pytest.raises(InputError, match=r"has layout 99, .*: update climassay\.$"):
        Collection.open(tmp_path, "later")


def test_removing(tmp_path, collection):
    collection.add([document(1, "Ice melts."), document(2, "Rain falls."), document(3, "Wind blows.")])
    assert [item.id for item in collection.remove("d1")] == ["d1"]
    assert [item.title for item in collection.remove("Title 2")] == ["Title 2"]
    for mode in ("dense", "bm25", "hybrid", "rrf"):
        assert {hit.passage.document_id for hit in collection.search("ice rain wind", mode=mode)} == {"d3"}
    with pytest.raises(InputError, match="no document with the id or title 'd1'"):
        collection.remove("d1")
    with pytest.raises(InputError, match="no passage 'd1-0'"):
        collection.passage("d1-0")
    assert [item.id for item in collection.add([document(1, "Ice melts.")]).added] == ["d1"]
    remove_collection(tmp_path, "ocean")
    with pytest.raises(InputError):
        remove_collection(tmp_path, "ocean")
    assert list_collections(tmp_path) == []


def test_a_collection_by_address(tmp_path, encoder):
    """As on an object store: an address, and no lock file."""
    address = f"file://{tmp_path}/store"
    store = CollectionStore.at(f"{address}/")
    assert (store.address, store.folder, store.lock_file("c")) == (address, None, None)
    made = Collection.create(address, "c", encoder)
    made.add([document(1, "Ice melts."), document(2, "Rain falls.")])
    assert [hit.passage.id for hit in Collection.open(address, "c").search("rain", k=1)] == ["d2-0"]
    assert [summary.passages for summary in list_collections(address)] == [2]
    assert Collection.open(address, "c").add([document(1, "Ice melts.")]).passages == 0
    remove_collection(address, "c")
    assert list_collections(address) == []


def test_a_damaged_collection_is_told(tmp_path, collection):
    collection.add([document(1, "Ice melts.")])
    for manifest in (tmp_path / "ocean.lance" / "_versions").iterdir():
        manifest.write_bytes(b"no manifest")
    with pytest.raises(InputError, match=r"'ocean' in .* cannot be read \(.*delete ocean.lance"):
        Collection.open(tmp_path, "ocean")


def test_what_another_handle_adds_is_seen_at_once(tmp_path, collection, encoder):
    other = Collection.open(tmp_path, "ocean", encoder)
    assert collection.search("melting ice") == []
    other.add([document(1, "Ice melts in the sun.")])
    assert [hit.passage.id for hit in collection.search("melting ice")] == ["d1-0"]
    other.remove("d1")
    assert collection.search("melting ice") == []


def test_passages_of_a_document_by_their_places(collection):
    collection.add([document(1, *(f"Fact {number} of the sea." for number in range(5))), document(2, "Another.")])
    assert [passage.id for passage in collection.passages_at("d1", range(1, 3))] == ["d1-1", "d1-2"]
    assert [passage.id for passage in collection.passages_at("d1", range(4, 99))] == ["d1-4"]
    assert collection.passages_at("d1", range(5, 9)) == collection.passages_at("d' OR 'a'='a", range(9)) == []
    assert {passage.id for passage in collection.iterate_passages(batch_size=2)} == {
        *(f"d1-{n}" for n in range(5)),
        "d2-0",
    }


def test_the_version_changes_with_the_content_only(tmp_path, collection, encoder):
    other = Collection.open(tmp_path, "ocean", encoder)
    before = collection.version
    assert other.version == before
    collection.add([document(1, "Sea level rises.")])
    added = other.version
    assert added == collection.version != before
    collection.remove("d1")
    assert other.version not in (before, added)


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
