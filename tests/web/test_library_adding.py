"""Documents sent through the pages: who may, what becomes of each file, what a kill leaves, what twice changes."""

import os
import re

import pytest

import runaway
from climassay.corpus import Collection
from climassay.corpus.collection_storage import CollectionStore
from climassay.corpus.readers import sandboxed_reader
from climassay.web.library import uploads as adding
from climassay.web.library.uploads import uploads_folder
from library_parts import CLOUD, GLACIER, OCEAN, TellingEncoder, add_book, pdf_of, teach
from patience import job_at_its_end, until
from web_parts import application_over, csrf_of, post
from web_routes import Site

BOOK = ("files", ("seas.pdf", pdf_of(OCEAN, GLACIER), "application/pdf"))


@pytest.fixture
def place(place_on):
    made = place_on()
    teach(made)
    return made


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """A site whose jobs do not begin, for what must not even be queued."""
    site = Site(tmp_path_factory.mktemp("still"))
    yield site
    assert kept(site.place) == []
    assert site.place.jobs.list() == []
    site.close()


def send(client, *files, collection="seas", **fields):
    data = {"csrf": csrf_of(client, "/"), "new_collection": collection, **fields}
    return client.post("/library/upload", data=data, files=list(files) or [BOOK])


def added(place, client, *files, **fields):
    """The job of an upload, at its end, and the page that tells of it."""
    answer = send(client, *files, **fields)
    assert answer.status_code == 303, answer.text
    address = answer.headers["location"]
    return job_at_its_end(place.jobs, address.rpartition("/")[2]), client.get(address).text


def kept(place):
    return [path for path in uploads_folder(place.workspace).rglob("*") if path.is_file()]


def documents(place, name="seas"):
    return Collection.open(place.workspace, name).documents()


def test_a_pdf_becomes_a_document_that_is_found(place, client_of):
    client = client_of("adjudicator")
    job, page = added(place, client, title="The Seas", licence="CC0", url="https://example.org/seas")
    (document,) = documents(place)
    assert (document.title, document.source, document.licence) == ("The Seas", "seas.pdf", "CC0")
    assert (document.url, document.pages) == ("https://example.org/seas", 2)
    counts = {"documents": 1, "passages": 1, "refused": 0}
    assert job.result == {"page": f"/library/uploads/{job.id}", "collection": "seas", **counts}
    assert f'href="/library/seas/documents/{document.id}"' in page
    assert "<mark>glacier</mark>" in client.get("/library/seas?q=glaciers").text


def test_each_file_has_its_own_fate(place, client_of):
    files = [
        BOOK,
        ("files", ("broken.pdf", b"%PDF-1.4 and then nothing", "application/pdf")),
        ("files", ("page.html", f"<p>{CLOUD}<script>alert(1)</script></p>".encode(), "text/html")),
        ("files", ("virus.exe", b"MZ", "application/pdf")),
        ("files", ("rows.csv", f'text,title\n"{OCEAN}",Ocean\n"{CLOUD}",Cloud\n'.encode(), "text/csv")),
    ]
    job, page = added(place, client_of("adjudicator"), *files)
    assert {document.title for document in documents(place)} == {"Seas", "page", "Ocean", "Cloud"}
    fates = re.findall(r'<span class="badge \w+">([\w ]+)</span> <strong>([\w.]+)</strong>', page)
    assert sorted(fates) == [
        ("added", "page.html"),
        ("added", "rows.csv"),
        ("added", "seas.pdf"),
        ("refused", "broken.pdf"),
        ("refused", "virus.exe"),
    ]
    assert "broken.pdf is damaged or truncated" in page
    assert job.result["refused"] == 2
    assert not any("alert" in passage.text for passage in Collection.open(place.workspace, "seas").iterate_passages())


def test_the_page_says_what_was_left_out(place, client_of):
    page = f"<nav>Home</nav><p>{OCEAN}<sup>1</sup></p><h2>References</h2><p>Li, X. Ice. Nature 3, 5 (2019).</p>"
    _, shown = added(place, client_of("adjudicator"), ("files", ("page.html", page.encode(), "text/html")))
    assert all(words in shown for words in ("1 reference", "1 navigation block", "1 note mark"))


def test_the_same_file_under_another_name_is_not_added_twice_and_that_is_said(place, client_of):
    client = client_of("adjudicator")
    added(place, client)
    job, page = added(place, client, ("files", ("oceans.pdf", BOOK[1][1], "application/pdf")))
    assert [one.source for one in documents(place)] == ["seas.pdf"]
    assert (job.result["documents"], job.result["passages"], job.result["refused"]) == (0, 0, 0)
    assert "Already there as Seas (seas.pdf)." in page


def test_a_file_that_is_there_already_says_as_what_and_which_details_were_not_used(place, client_of):
    client = client_of("adjudicator")
    added(place, client, title="The Seas", author="IPCC", date="2023")
    _, page = added(place, client, title="The Seas", author="Somebody", date="2024-02")
    assert "Already there as The Seas (seas.pdf)." in page
    assert "The author and date that you gave were not used" in page
    [document] = documents(place)
    assert (document.title, document.author, document.date) == ("The Seas", "IPCC", "2023")


def test_author_and_date_are_cited_and_can_be_changed(place, client_of):
    client = client_of("adjudicator")
    added(place, client, title="The Seas", author="A. Diver", date="2023-03")
    [document] = documents(place)
    address = f"/library/seas/documents/{document.id}"
    assert "A. Diver" in client.get(address).text
    changed = {"title": "The Seas", "author": "Royal Society <of> Divers", "date": "2024"}
    assert post(client, f"{address}/edit", changed).status_code == 303
    passage = client.get(f"/library/seas/passages/{document.id}-0").text
    assert "Royal Society &lt;of&gt; Divers, The Seas (seas.pdf)" in passage
    assert "year = {2024}" in passage
    assert "author = {{Royal Society" in passage
    answer = post(client, f"{address}/edit", changed | {"date": "last year"})
    assert answer.status_code == 400
    assert "looks like 2023-03" in answer.text
    post(client, f"{address}/edit", changed | {"author": "", "date": ""})
    [document] = documents(place)
    assert (document.author, document.date) == (None, None)


def test_no_collection_is_chosen_for_the_sender(place, client_of):
    add_book(place, "books")
    client = client_of("adjudicator")
    form = client.get("/library/upload").text
    assert re.search(r'<option value="" selected>Choose a collection</option><option>books</option>', form)
    answer = send(client, collection="")
    assert answer.status_code == 400
    assert "Choose a collection, or name a new one." in answer.text
    assert "<option selected>books" in client.get("/library/upload?collection=books").text


def test_when_nothing_can_be_read_no_collection_is_made(place, client_of):
    job, page = added(place, client_of("adjudicator"), ("files", ("broken.pdf", b"%PDF-1.4 nothing", "")))
    assert job.state == "done"
    assert CollectionStore.at(place.workspace).names() == []
    assert "To the collection" not in page


def test_files_are_gone_when_their_job_has_ended_and_another_one_begins(place, client_of):
    client = client_of("adjudicator")
    added(place, client)
    first = kept(place)
    added(place, client, ("files", ("ice.txt", GLACIER.encode(), "")))
    assert not set(first) & set(kept(place))
    adding.delete_finished_uploads(place)
    assert kept(place) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.process
def test_an_upload_whose_reader_hangs_can_be_stopped(place, client_of, monkeypatch):
    client = client_of("adjudicator")
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([runaway.FOLDER, os.environ.get("PYTHONPATH", "")]))
        patch.setattr(sandboxed_reader, "_read_file", runaway.burn)
        job = send(client).headers["location"].rpartition("/")[2]
        until(lambda: "reading" in place.jobs.get(job).message)
        post(client, f"/jobs/{job}/stop")
    assert added(place, client)[0].state == "done"
    assert place.jobs.get(job).state == "stopped"
    assert [event for event in place.jobs.events(job) if event.kind == "file"] == []


def test_a_killed_job_goes_on_with_what_is_missing(place_on, place):
    """The first server dies while the second of three files is embedded."""

    class Killed(BaseException):
        pass

    class Dying(TellingEncoder):
        def encode(self, texts, **more):
            if any("glacier" in text for text in texts) and more.get("role") != "query":
                raise Killed
            return super().encode(texts, **more)

    files = [
        ("files", (f"{name}.txt", text.encode(), "")) for name, text in (("a", OCEAN), ("b", GLACIER), ("c", CLOUD))
    ]
    with application_over(place) as clients:
        teach(place, Dying())
        answer = send(clients("adjudicator"), *files)
        job = answer.headers["location"].rpartition("/")[2]
        [lane] = (one for one in place.jobs._threads if one.name == "jobs-corpus")
        until(lambda: place.jobs.events(job) and not lane.is_alive())
    assert place.jobs.get(job).state == "running"
    assert [document.source for document in documents(place)] == ["a.txt"]
    later = place_on()
    later.jobs.requeue_foreign_jobs()
    teach(later)
    with application_over(later) as clients:
        assert job_at_its_end(later.jobs, job).state == "done"
        told = [event.body["name"] for event in later.jobs.events(job) if event.kind == "file"]
    assert told == ["a.txt", "b.txt", "c.txt"]
    assert sorted(document.source for document in documents(later)) == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"collection": ""}, "Choose a collection, or name a new one."),
        ({"collection": "../../etc"}, "cannot name a collection"),
        ({"collection": "search"}, "A collection cannot be called search"),
        ({"collection": "Uploads"}, "A collection cannot be called Uploads"),
        ({"collection": "a" * 64}, "cannot name a collection"),
        ({"url": "javascript:alert(1)"}, "must begin with http"),
        ({"title": "x" * 301}, "The title is longer than 300 characters"),
        ({"licence": "x" * 301}, "The licence is longer"),
    ],
    ids=["none", "path", "search", "uploads", "long", "script", "title", "licence"],
)
def test_a_form_that_makes_no_sense_is_a_sentence_and_keeps_no_file(still, fields, sentence):
    answer = send(still.visitor("adjudicator"), **fields)
    assert answer.status_code == 400
    assert sentence in answer.text
    assert kept(still.place) == []


def test_a_script_is_answered_in_data(place, client_of):
    client = client_of("adjudicator")
    headers = {"accept": "application/json", "x-csrf-token": csrf_of(client, "/")}
    answer = client.post("/library/upload", data={"new_collection": "s"}, files=[BOOK], headers=headers)
    assert answer.json()["page"].startswith("/library/uploads/j")
    answer = client.post(
        "/library/upload", data={"new_collection": "s"}, headers=headers, files=[("files", ("a.pdf", b"x"))]
    )
    assert (answer.status_code, answer.json()) == (400, {"error": "a.pdf is not a PDF file by its content."})


class TestSmallServer:
    @pytest.fixture
    def place_settings(self):
        return {"upload_bytes": 100_000}

    def test_more_than_the_limit_is_refused_while_it_comes_in(self, place, client_of):
        client = client_of("adjudicator")
        files = [("files", ("big.txt", b"The sea. " * 20_000, "text/plain"))]
        assert send(client, *files).status_code == 413

        def parts():
            yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="big.txt"\r\n\r\n'
            for _ in range(10_000):
                yield b"The sea. " * 100

        headers = {"content-type": "multipart/form-data; boundary=x", "x-csrf-token": csrf_of(client, "/")}
        assert client.post("/library/upload", content=parts(), headers=headers).status_code == 413
        assert kept(place) == []


class TestRemoving:
    def test_an_admin_removes_a_document(self, place, client_of):
        first = add_book(place, "seas")
        add_book(place, "seas", title="Other")
        assert post(client_of("admin"), f"/library/seas/documents/{first}/remove").status_code == 303
        assert [document.title for document in documents(place)] == ["Other"]

    def test_an_admin_removes_a_collection_by_typing_its_name(self, place, client_of):
        add_book(place, "seas")
        admin = client_of("admin")
        assert post(admin, "/library/seas/remove", {"confirmed": "sea"}).status_code == 400
        assert len(documents(place)) == 1
        assert post(admin, "/library/seas/remove", {"confirmed": "seas"}).headers["location"] == "/library"
        assert admin.get("/library/seas").status_code == 404

    def test_what_is_not_there_is_told(self, place, client_of):
        add_book(place, "seas")
        admin = client_of("admin")
        assert post(admin, "/library/seas/documents/none/remove").status_code == 404
        assert post(admin, "/library/none/remove", {"confirmed": "none"}).status_code == 404


def test_an_upload_page_shows_uploads_only(place, client_of):
    client = client_of("adjudicator")
    place.jobs.register("other", lambda *_: None, "questions")
    other = place.jobs.submit("other", "Other", {}, "adjudicator")
    assert client.get(f"/library/uploads/{other}").status_code == 404
    added(place, client)
    assert client.get(f"/library/uploads/{place.jobs.list(adding.UPLOAD_KIND)[0].id}").status_code == 200
