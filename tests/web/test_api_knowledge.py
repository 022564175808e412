"""Operations on people, the library, checks and jobs: each is called with real content, and its answer is checked."""

import pytest

from api_parts import COLLECTION, finished_check
from check_parts import SUN
from climassay import __version__
from climassay.corpus import Collection
from climassay.factcheck import from_data
from climassay.web.checks.store import checks_of
from climassay.web.library.cache import library_of


def test_me(server):
    seen = server.get("/me", role="adjudicator")
    assert (seen["user"]["name"], seen["user"]["role"]) == ("adjudicator", "adjudicator")
    assert (seen["version"], seen["public"], seen["publisher"]) == (__version__, "nothing", "Example Observatory")


def test_users(server):
    server.get("/me", role="annotator")
    server.get("/me", role="admin")
    first = server.get("/users", role="admin", limit=1)
    rest = server.get("/users", role="admin", after=first["next"])
    names = [one["name"] for one in (*first["items"], *rest["items"])]
    assert (names, rest["next"]) == ([user.name for user in server.place.accounts.users()], None)


def test_invite(server):
    made = server.post("/users", {"name": "Ada", "role": "adjudicator", "shown": "Ada Lovelace"}, status=201)
    assert (made["user"]["name"], made["user"]["role"], made["purpose"]) == ("ada", "adjudicator", "invitation")
    link = server.place.accounts.link(made["address"].rsplit("/", 1)[1])
    assert (link.user.name, link.purpose) == ("ada", "invitation")
    assert "already a user" in server.post("/users", {"name": "ada"}, status=400)["error"]
    assert server.post("/users", {"name": "bob", "power": 1}, status=422)["details"][0]["at"] == "body.power"


def test_one_user(server):
    server.place.accounts.add("grace", "annotator", "Grace H.")
    assert server.get("/users/grace", role="admin")["shown"] == "Grace H."
    assert server.get("/users/nobody", role="admin", status=404) == {"error": "There is no user 'nobody'."}


def test_change_user(server):
    server.place.accounts.add("mary", "annotator")
    changed = server.ask("PATCH", "/users/mary", json={"role": "adjudicator", "shown": "Mary  A."})
    assert (changed["role"], changed["shown"], changed["active"]) == ("adjudicator", "Mary A.", True)
    assert server.ask("PATCH", "/users/mary", json={"active": False})["active"] is False
    assert server.place.accounts.user("mary").role == "adjudicator"


def test_password_link(server):
    server.place.accounts.add("rosa", "annotator")
    made = server.post("/users/rosa/link", status=201)
    assert server.place.accounts.link(made["address"].rsplit("/", 1)[1]).purpose == "password"


def test_collections(server):
    [books] = [one for one in server.get("/library/collections")["items"] if one["name"] == COLLECTION]
    page = server.page("/library")
    assert books["documents"] == 2
    assert f"<dt>Passages</dt><dd>{books['passages']}</dd>" in page


def test_collection(server):
    contents = library_of(server.place).contents(COLLECTION)
    seen = server.get(f"/library/collections/{COLLECTION}")
    assert (seen["encoder"], seen["passages"], seen["bytes"]) == ("words", contents.passages, contents.bytes)
    assert "no collection 'none'" in server.get("/library/collections/none", status=404)["error"]


def test_remove_collection(server):
    spare(server, "spare-one")
    assert server.ask("DELETE", "/library/collections/spare-one", status=204) is None
    assert not library_of(server.place).has("spare-one")
    server.ask("DELETE", "/library/collections/spare-one", status=404)


def test_documents(server):
    path = f"/library/collections/{COLLECTION}/documents"
    first = server.get(path, limit=1)
    second = server.get(path, limit=1, after=first["next"])
    assert [one["id"] for one in (*first["items"], *second["items"])] == list(server.content.documents)
    assert second["next"] is None


def test_add_documents(server):
    files = [
        ("files", ("ice.md", b"# Ice\n\nIce melts when it is warm.", "text/markdown")),
        ("files", ("x.exe", b"MZ")),
    ]
    path = "/library/collections/added/documents"
    begun = server.ask("POST", path, role="adjudicator", status=202, files=files, data={"licence": "CC0"})
    assert (begun["files"], len(begun["refused"])) == (["ice.md"], 1)
    done = server.ended(begun["job"])
    assert (done["state"], done["result"]["documents"], done["by"]) == ("done", 1, "adjudicator")
    [added] = server.get("/library/collections/added/documents")["items"]
    assert (added["title"], added["licence"], added["complete"]) == ("Ice", "CC0", True)
    told = server.get(f"/jobs/{begun['job']}/events", role="adjudicator")["items"]
    assert [(one["number"], one["body"]["shown"], one["body"]["outcome"]) for one in told] == [(1, "ice.md", "added")]
    many = [*files, *files]
    assert "one file only" in server.ask("POST", path, status=400, files=many, data={"title": "Ice"})["error"]


def test_document(server):
    [first, _] = server.content.documents
    path = f"/library/collections/{COLLECTION}/documents/"
    assert server.get(path + first)["passages"] == len(server.passages(first))
    assert "no document 'none'" in server.get(path + "none", status=404)["error"]


def test_rename_document(server):
    path = f"/library/collections/spare-three/documents/{spare(server, 'spare-three')}"
    renamed = server.ask("PATCH", path, role="adjudicator", status=200, json={"title": " The  ice,\nsecond edition "})
    assert renamed["title"] == server.get(path)["title"] == "The ice, second edition"
    assert "1 to 300 characters" in server.ask("PATCH", path, status=400, json={"title": " "})["error"]
    missing = server.ask("PATCH", path.replace("-document", "-other"), status=404, json={"title": "Ice"})
    assert "no document 'spare-three-other'" in missing["error"]


def test_remove_document(server):
    gone = spare(server, "spare-two")
    server.ask("DELETE", f"/library/collections/spare-two/documents/{gone}", status=204)
    assert server.get("/library/collections/spare-two/documents")["items"] == []


def test_passages(server):
    [first, _] = server.content.documents
    path = f"/library/collections/{COLLECTION}/documents/{first}/passages"
    part = server.get(path, limit=3)
    rest = server.get(path, after=part["next"], limit=200)
    texts = [one["text"] for one in (*part["items"], *rest["items"])]
    assert texts == [one.text for one in server.passages(first)]
    assert server.get(path, after=2**31 - 1) == {"items": [], "next": None}


def test_passage(server):
    [first, *_] = server.passages(server.content.documents[0])
    seen = server.get(f"/library/collections/{COLLECTION}/passages/{first.id}")
    assert (seen["text"], seen["citation"], seen["headings"]) == (first.text, first.citation, list(first.headings))
    assert server.page(seen["page"]).startswith("<!doctype html>")
    server.get(f"/library/collections/{COLLECTION}/passages/none", status=404)


def test_search(server):
    path = f"/library/collections/{COLLECTION}/search"
    found = server.get(path, q="brightness of the Sun", mode="bm25", limit=3)
    direct = Collection.open(server.place.workspace, COLLECTION).search("brightness of the Sun", k=3, mode="bm25")
    assert [one["passage"]["id"] for one in found["hits"]] == [hit.passage.id for hit in direct]
    assert [one["score"] for one in found["hits"]] == pytest.approx([hit.score for hit in direct])
    [_, other] = server.content.documents
    kept = server.get(path, q="carbon", mode="bm25", document=other)["hits"]
    assert {one["passage"]["document_id"] for one in kept} == {other}
    assert "empty" in server.get(path, q=" ", status=400)["error"]


def test_search_all(server):
    found = server.get("/library/search", q="brightness of the Sun", mode="bm25", limit=1)
    assert (len(found["hits"]), found["more"], found["not_searched"]) == (1, True, [])


def test_checks(server):
    assert [one["id"] for one in server.get("/checks", q="carbon sun", verdict="incorrect")["items"]] == [
        server.content.check
    ]
    assert server.get("/checks", after="c000000000000", status=400) == {"error": "There is no check 'c000000000000'."}


def test_check_claim(server):
    begun = server.post("/checks", {"claim": SUN, "date": "15 May 2023"}, role="annotator", status=202)
    check, job = begun["check"]["id"], begun["job"]["id"]
    assert begun["events"] == f"/jobs/{job}/events"
    assert server.ended(job)["state"] == "done"
    done = server.get(f"/checks/{check}")
    assert [done[name] for name in ("state", "verdict", "by")] == ["done", "incorrect", "annotator"]
    assert done["date"] == "2023-05-15"
    told = server.get(f"/jobs/{job}/events")["items"]
    assert {"begin", "verdict"} <= {one["kind"] for one in told}
    assert [one["number"] for one in told] == list(range(1, len(told) + 1))
    assert "the limit is 2,000" in server.post("/checks", {"claim": "x" * 2001}, status=400)["error"]
    assert "no set-up 'x'" in server.post("/checks", {"claim": SUN, "set_up": "x"}, status=400)["error"]


def test_set_ups(server):
    [one] = server.get("/checks/set-ups")["items"]
    assert (one["name"], one["advocates"], one["model"]) == ("two sides", ["Physical", "Pamphlet"], "local:scripted")


def test_agreement_of_readers(server):
    check = finished_check(server.place, "A claim that readers agree on.")
    before = server.get("/checks/agreement")["agreed"] or {"n": 0}
    checks_of(server.place).review(check, "annotator", "agree")
    after = server.get("/checks/agreement")["agreed"]
    assert (after["n"], after["level"]) == (before["n"] + 1, 0.95)
    assert after["low"] < after["value"] <= after["high"]


def test_one_check(server):
    seen = server.get(f"/checks/{server.content.check}")
    assert (seen["claim"], seen["source"], seen["verdict"], seen["outcome"]) == (
        SUN, "A columnist", "incorrect", "verdict"
    )  # fmt: skip
    assert seen["claim"] in server.page(seen["page"])
    server.get("/checks/none", status=404)


def test_transcript(server):
    seen = server.get(f"/checks/{server.content.check}/transcript")
    assert from_data(seen["transcript"]) == checks_of(server.place).get(server.content.check).transcript
    assert seen["settings"]["model"] == "local:scripted"
    waiting = other_check(server, "A claim that waits.")
    assert "its state is 'waiting'" in server.get(f"/checks/{waiting}/transcript", status=404)["error"]


def test_claim_review(server):
    why = server.get(f"/checks/{server.content.check}/claimreview", status=404)["error"]
    assert "that an adjudicator agrees with" in why
    server.place.accounts.add("approver", "adjudicator")
    checks_of(server.place).review(server.content.check, "approver", "agree")
    seen = server.get(f"/checks/{server.content.check}/claimreview")
    assert (seen["@type"], seen["claimReviewed"], seen["author"]["name"]) == ("ClaimReview", SUN, "Example Observatory")
    assert seen["url"] == f"http://127.0.0.1:8000/checks/{server.content.check}"
    assert seen["reviewRating"]["alternateName"] == "incorrect"


def test_reviews(server):
    path = f"/checks/{server.content.check}/reviews"
    server.post(path, {"opinion": "disagree"}, role="adjudicator")
    server.post(path, {"opinion": "agree", "comment": "Now I see."}, role="adjudicator")
    said = [one for one in server.get(path)["items"] if one["by"] == "adjudicator"]
    assert [(one["opinion"], one["current"]) for one in said] == [("disagree", False), ("agree", True)]


def test_review(server):
    path = f"/checks/{server.content.check}/reviews"
    said = server.post(path, {"opinion": "undecided", "comment": "Who knows."}, role="annotator")
    assert (said["by"], said["opinion"], said["comment"], said["current"]) == (
        "annotator", "undecided", "Who knows.", True
    )  # fmt: skip
    assert "write a comment" in server.post(path, {"opinion": "undecided"}, status=400)["error"]
    assert server.post(path, {"opinion": "maybe"}, status=422)["details"][0]["at"] == "body.opinion"


def test_stop_check(server):
    waiting = other_check(server, "A claim that is stopped.")
    server.post(f"/checks/{waiting}/stop", role="annotator", status=403)
    assert server.post(f"/checks/{waiting}/stop", role="adjudicator")["state"] == "stopped"


def test_ask_again(server):
    stopped = other_check(server, "Ice melts in the Sun.")
    checks_of(server.place).stop(stopped)
    server.post(f"/checks/{stopped}/again", role="annotator", status=403)
    begun = server.post(f"/checks/{stopped}/again", role="adjudicator", status=202)
    assert server.ended(begun["job"]["id"])["state"] == "done"
    assert server.get(f"/checks/{stopped}")["state"] == "done"


def test_jobs(server):
    made = [quick_job(server, number) for number in range(3)]
    assert [one["id"] for one in server.get("/jobs", role="admin", limit=3)["items"]] == made[::-1]


def test_job(server):
    made = quick_job(server, 7)
    seen = server.get(f"/jobs/{made}", role="adjudicator")
    assert (seen["id"], seen["title"], seen["by"]) == (made, "Work 7", "admin")
    server.get("/jobs/none", status=404)


def test_job_events(server):
    made = quick_job(server, 8)
    server.get(f"/jobs/{made}/events", role="annotator", status=403)
    assert server.get(f"/jobs/{made}/events", role="admin") == {"items": [], "next": None}


def test_stop_job(server):
    made = endless_job(server)
    assert server.post(f"/jobs/{made}/stop")["state"] == "stopped"
    assert server.post(f"/jobs/{made}/stop")["state"] == "stopped"


def spare(server, name):
    """A collection to be removed; the id of its one document."""
    from check_parts import add_collection

    add_collection(server.place, name, "A passage to be removed.")
    return f"{name}-document"


def other_check(server, claim):
    """A check whose debate nobody has begun."""
    from climassay.factcheck import make_claim

    store = checks_of(server.place)
    settings = store.get(server.content.check).settings
    return store.begin(make_claim(claim), settings, set_up="two sides", by="admin")


def quick_job(server, number):
    """Work of nothing."""
    server.place.jobs.register("nothing", lambda *_: None, "corpus")
    return server.place.jobs.submit("nothing", f"Work {number}", {}, "admin")


def endless_job(server):
    """Work that goes on until it is stopped."""

    def work(place, _payload, report):
        while True:
            report.progress(0)
            place.jobs.wait_for_news(0.05)

    server.place.jobs.register("endless", work, "corpus")
    return server.place.jobs.submit("endless", "Endless work", {}, "admin")
