"""The files that documents were read from: kept once, gone with the last collection; and documents under new titles."""

import shutil
from dataclasses import replace

import pytest

from climassay.corpus import Collection, ReadOptions, StoredDocument, read, remove_collection
from climassay.corpus.collection_storage import distinct_titles
from climassay.corpus.documents import TableColumns
from climassay.errors import InputError
from climassay.workspace import Workspace
from library_parts import CLOUD, GLACIER, OCEAN, pdf_of
from topic_encoder import TopicEncoder


@pytest.fixture
def workspace(tmp_path):
    return Workspace.open(tmp_path / "w")


@pytest.fixture
def seas(tmp_path):
    """A PDF file of two pages."""
    file = tmp_path / "seas.pdf"
    file.write_bytes(pdf_of(OCEAN, GLACIER))
    return file


def add(workspace, name, file, **how):
    collection = Collection.create(workspace, name, TopicEncoder(), passage_size=200, passage_overlap=0)
    return collection, collection.add(read(file).documents, **how)


def kept_files(workspace):
    return {file.name: file.read_bytes() for file in (workspace.collections / "originals").glob("[!.]*")}


def test_a_file_is_kept_once_and_goes_with_the_last_collection_that_holds_its_document(workspace, seas):
    first, report = add(workspace, "first", seas)
    [document] = report.added
    assert report.originals == 1
    second, _ = add(workspace, "second", seas)
    assert kept_files(workspace) == {f"{document.id}.pdf": seas.read_bytes()}
    assert second.originals.find_pdf(document.id).read_bytes() == seas.read_bytes()
    assert second.originals.bytes_of([document.id, "none"]) == seas.stat().st_size
    first.remove(document.id)
    assert kept_files(workspace)
    remove_collection(workspace, "second")
    assert not kept_files(workspace)


def test_an_older_version_takes_its_file_with_it(workspace, seas):
    collection, _ = add(workspace, "seas", seas)
    seas.write_bytes(pdf_of(OCEAN, CLOUD))
    report = collection.add(read(seas).documents, replace=True)
    assert len(report.replaced) == 1
    assert list(kept_files(workspace).values()) == [seas.read_bytes()]


def test_what_was_added_without_its_file_gets_it_by_adding_again(workspace, seas):
    collection, report = add(workspace, "seas", seas, keep_originals=False)
    assert (report.originals, kept_files(workspace)) == (0, {})
    again = collection.add(read(seas).documents)
    assert (again.passages, again.originals) == (0, 1)
    assert kept_files(workspace)


def test_a_file_that_changed_after_it_was_read_is_not_kept(workspace, seas):
    documents = read(seas).documents
    seas.write_bytes(pdf_of(CLOUD))
    collection = Collection.create(workspace, "seas", TopicEncoder())
    assert collection.add(documents).originals == 0
    seas.unlink()
    assert collection.add(documents).originals == 0
    assert not kept_files(workspace)


def test_nothing_is_kept_of_a_document_that_was_not_added(workspace, seas):
    [document] = read(seas).documents
    report = Collection.create(workspace, "seas", TopicEncoder()).add([replace(document, blocks=())])
    assert (len(report.skipped), report.originals, kept_files(workspace)) == (1, 0, {})


def test_other_files_are_kept_and_tables_are_not(workspace, tmp_path):
    (tmp_path / "notes.md").write_text(f"# Notes\n\n{OCEAN}\n")
    (tmp_path / "rows.csv").write_text(f"text\n{GLACIER}\n")
    (tmp_path / "works.csv").write_text(f"title,text\nIce,{GLACIER}\nSea,{OCEAN}\n")
    collection, notes = add(workspace, "mixed", tmp_path / "notes.md")
    assert collection.originals.find(notes.added[0].id).read_text() == f"# Notes\n\n{OCEAN}\n"
    assert collection.originals.find_pdf(notes.added[0].id) is None
    assert collection.add(read(tmp_path / "rows.csv").documents).originals == 0
    works = read(tmp_path / "works.csv", ReadOptions(columns=TableColumns(document=("title",)))).documents
    # A table of many works is not read once more for each of them.
    assert [(one.title, one.path) for one in works] == [("Ice", None), ("Sea", None)]


@pytest.mark.parametrize("name", ["../records", "..", "/etc/passwd", "../../0123456789abcdef", ""])
def test_only_ids_name_files(workspace, seas, name):
    collection, _ = add(workspace, "seas", seas)
    (workspace.root / "0123456789abcdef").write_text("not ours")
    assert collection.originals.find(name) is None


def test_a_renamed_document_is_found_and_cited_by_its_new_title(workspace, seas):
    collection, report = add(workspace, "seas", seas)
    document = report.added[0].id
    before = collection.search("glacier", k=1, mode="bm25")
    assert collection.edit("seas.pdf", title="  What the\nSeas Do ").title == "What the Seas Do"
    assert [one.title for one in collection.documents()] == ["What the Seas Do"]
    [after] = collection.search("glacier", k=1, mode="bm25")
    assert (after.passage.id, after.score) == (before[0].passage.id, before[0].score)
    assert after.passage.citation.startswith("What the Seas Do (seas.pdf), ")
    again = collection.add(read(seas).documents)
    assert ([one.title for one in again.already_there], again.added) == (["What the Seas Do"], ())
    assert collection.document_passages("What the Seas Do")[0].document_id == document


def test_author_and_date_are_changed_and_cited(workspace, seas):
    collection, _ = add(workspace, "seas", seas)
    edited = collection.edit("Seas", author=" Royal  Society ", date="2023-03-20")
    assert (edited.title, edited.author, edited.date) == ("Seas", "Royal Society", "2023-03-20")
    assert collection.documents() == [edited]
    [hit] = collection.search("glacier", k=1, mode="bm25")
    assert hit.passage.citation.startswith("Royal Society, Seas (seas.pdf), ")
    removed = collection.edit("Seas", author="", date="")
    assert (removed.author, removed.date) == (None, None)
    for wrong in ({"date": "2023-13"}, {"date": "spring"}, {"author": "x" * 301}):
        with pytest.raises(InputError):
            collection.edit("Seas", **wrong)


def test_a_collection_of_an_earlier_version_is_read_and_gets_the_missing_column(workspace, seas):
    collection, _ = add(workspace, "seas", seas)
    collection._table.drop_columns(["author"])
    old = Collection.open(workspace, "seas", TopicEncoder())
    assert [one.author for one in old.documents()] == [None]
    assert old.search("glacier", k=1)[0].passage.author is None
    assert all(passage.author is None for passage in old.iterate_passages())
    old.add([replace(read(seas).documents[0], id="f" * 16, title="Other", source="other.pdf", author="A. Diver")])
    assert sorted(str(one.author) for one in old.documents()) == ["A. Diver", "None"]
    assert old.edit("Seas", author="B. Diver").author == "B. Diver"
    assert Collection.open(workspace, "seas").settings == collection.settings


@pytest.mark.parametrize(("document", "title"), [("none", "New"), ("Seas", " \n"), ("Seas", "x" * 301)])
def test_what_cannot_be_renamed_is_refused(workspace, seas, document, title):
    collection, _ = add(workspace, "seas", seas)
    with pytest.raises(InputError):
        collection.edit(document, title=title)
    assert [one.title for one in collection.documents()] == ["Seas"]


def test_equal_titles_are_told_apart_by_their_files_and_equal_files_by_their_ids():
    def stored(id, title, source):
        return StoredDocument(id, title, source, 1, 1, None, None, None, None, None, None)

    titles = distinct_titles(
        [
            stored("aaaaaaaaaaaaaaaa", "Summary", "wg1.pdf"),
            stored("bbbbbbbbbbbbbbbb", "Summary", "wg2.pdf"),
            stored("cccccccccccccccc", "Summary", "wg2.pdf"),
            stored("dddddddddddddddd", "Glossary", "wg1.pdf"),
            stored("dddddddddddddddd", "Glossary", "wg1.pdf"),
        ]
    )
    assert len(set(titles.values())) == 4
    assert titles["aaaaaaaaaaaaaaaa"] == "Summary (wg1.pdf)"
    assert titles["bbbbbbbbbbbbbbbb"].startswith("Summary (wg2.pdf")
    assert titles["dddddddddddddddd"] == "Glossary"


def test_the_same_file_under_another_name_is_the_same_document(workspace, seas, tmp_path):
    collection, first = add(workspace, "seas", seas)
    copy = tmp_path / "oceans (1).pdf"
    shutil.copy(seas, copy)
    _, again = add(workspace, "seas", copy)
    assert (again.added, again.passages) == ((), 0)
    assert [one.id for one in again.already_there] == [one.id for one in first.added]
    assert [(one.source, one.document.source) for one in again.copies] == [("oceans (1).pdf", "seas.pdf")]
    assert [one.source for one in collection.documents()] == ["seas.pdf"]
    assert len(kept_files(workspace)) == 1
    found = [hit.passage.id for hit in collection.search("ocean", k=9)]
    assert sorted(found) == sorted(set(found))


def test_two_names_in_one_addition_are_one_document_with_one_file(workspace, seas, tmp_path):
    copy = tmp_path / "copy.pdf"
    shutil.copy(seas, copy)
    collection = Collection.create(workspace, "seas", TopicEncoder())
    report = collection.add([*read(seas).documents, *read(copy).documents])
    assert [one.source for one in report.added] == ["seas.pdf"]
    assert [(one.source, one.document) for one in report.copies] == [("copy.pdf", report.added[0])]
    assert report.originals == 1
    lines = list(report.lines())
    assert any("copy.pdf" in line and "seas.pdf" in line for line in lines)
    assert "1 document added" in lines[-1]
    assert "1 already there, 0 skipped" in lines[-1]


def test_an_interrupted_addition_is_completed_under_the_name_that_it_was_begun_with(workspace, tmp_path):
    first, copy = tmp_path / "seas.txt", tmp_path / "copy.txt"
    first.write_text(
        "\n\n".join(f"Gauge {number} tells how high the sea stands at its harbour." for number in range(9))
    )
    shutil.copy(first, copy)
    collection, report = add(workspace, "seas", first)
    [document] = report.added
    collection._table.delete(f"id = '{document.id}-1'")
    assert not collection.documents()[0].complete
    add(workspace, "seas", copy)
    assert [(one.source, one.passages) for one in collection.documents()] == [("seas.txt", document.passages)]


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("md", f"# Seas\n\n{OCEAN}\n".encode()),
        ("txt", f"{OCEAN}\n".encode()),
        ("html", f"<html><body><main><h1>Seas</h1><p>{OCEAN}</p></main></body></html>".encode()),
        ("csv", f"title,text\nIce,{GLACIER}\n".encode()),
        ("jsonl", f'{{"text": "{OCEAN}"}}\n'.encode()),
        ("pdf", pdf_of(OCEAN)),
    ],
)
def test_the_id_of_a_document_follows_from_its_content_alone(tmp_path, ending, content):
    ids = []
    for name, data in (("one", content), ("two", content), ("three", content.replace(b"e", b"a"))):
        file = tmp_path / f"{name}.{ending}"
        file.write_bytes(data)
        if name != "three" or ending in ("md", "txt", "html"):
            ids.append([one.id for one in read(file).documents])
    assert ids[0] == ids[1]
    assert ids[0] not in ids[2:]
