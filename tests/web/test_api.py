"""Operations of the REST API, each called with real content; its document, errors and the client of docs/api.md."""

import io
import os
import re
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from annotated_dataset import DATASET, fill
from api_parts import API, COLLECTION, bearer, document, finished_check, furnish, operations, settings_of
from browser import serving
from check_parts import SUN
from climassay.corpus import Collection
from climassay.factcheck import from_data
from climassay.generation.annotation import Label
from climassay.records.queries import list_runs, run_details
from climassay.web import AppState, ServerSettings
from climassay.web.checks.store import get_check_store
from climassay.web.library.cache import collection_cache
from climassay.workspace import Workspace
from patience import PATIENCE
from stored_runs import ask, store_mcq
from web_parts import application_over

GUIDE = Path(__file__).parents[2] / "docs" / "api.md"


@pytest.fixture
def place_settings(tmp_path):
    return settings_of(tmp_path)


def test_the_document_describes_the_operations_only_and_is_public(server):
    described = server.client.get("/api/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    assert described["servers"] == [{"url": "http://127.0.0.1:8000"}]
    assert described == document()
    assert {path for _, path, _ in operations()} == set(described["paths"])
    assert all(path.startswith(f"{API}/") for path in described["paths"])
    assert len(operations()) <= 17


def test_an_invalid_token_is_refused_even_if_everybody_may_read(place_on, place_settings):
    place_settings["public"] = "read"
    with application_over(place_on()) as client_of:
        client = client_of()
        assert client.get(f"{API}/runs").status_code == 200
        for header in ("Bearer climassay_wrong", "Bearer", "Basic YTpi", "Bearer \u00e9"):
            response = client.get(f"{API}/runs", headers={"Authorization": header.encode()})
            assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer"), header


def test_errors_are_one_sentence_in_json(server):
    for path, status in {"/none": 404, "/runs?limit=0": 422, "/runs?after=rffffffff": 400, "/runs/r": 404}.items():
        assert server.get(path, status=status)["error"].endswith(".")
    json_type = {"Content-Type": "application/json"} | bearer(server.place, "admin")
    for body, status in (
        (b'{"claim": ', 422),
        (b'{"claim": "\\ud800"}', 422), (b'{"claim": "a\\u0000b"}', 422), (b'{"claim": NaN}', 422),
        (b"[" * 100_000, 400), (b'{"claim": "x", "power": 1}', 422), (b"", 422), (b" " * (2**20 + 1), 413),
    ):  # fmt: skip
        response = server.client.post(f"{API}/checks", content=body, headers=json_type)
        assert (response.status_code, response.headers["content-type"]) == (status, "application/json"), body[:40]
        assert response.json()["error"].endswith(".")


def test_long_lists_continue_after_an_entry_while_others_are_added(server):
    makers = {
        "/checks": lambda: finished_check(server.place),
        "/runs": lambda: store_mcq(server.place.records, questions=4),
    }
    for path, make in makers.items():
        for _ in range(3):
            make()
        expected = [entry["id"] for entry in server.get(path, limit=200)["items"]]
        ids, after = [], None
        while True:
            page = server.get(path, limit=1, **({"after": after} if after else {}))
            ids += [entry["id"] for entry in page["items"]]
            after = page["next"]
            if after is None:
                break
            make()
        assert ids == expected


def test_collections(server):
    [books] = [entry for entry in server.get("/library/collections")["items"] if entry["name"] == COLLECTION]
    contents = collection_cache(server.place).contents(COLLECTION)
    assert (books["documents"], books["passages"], books["bytes"]) == (2, contents.passages, contents.bytes)
    assert "<!doctype html>" in server.page(books["page"])


def test_search_in_one_collection_finds_what_the_collection_finds(server):
    query = {"q": "brightness of the Sun", "mode": "bm25", "limit": 3}
    results = server.get("/library/search", collection=COLLECTION, **query)
    direct = Collection.open(server.place.workspace, COLLECTION).search("brightness of the Sun", k=3, mode="bm25")
    assert [hit["passage"]["id"] for hit in results["hits"]] == [hit.passage.id for hit in direct]
    assert [hit["score"] for hit in results["hits"]] == pytest.approx([hit.score for hit in direct])
    assert results["hits"][0]["excerpt"]
    assert "<!doctype html>" in server.page(results["hits"][0]["passage"]["page"])
    [_, other] = server.content.documents
    kept = server.get("/library/search", q="carbon", mode="bm25", collection=COLLECTION, document=other)["hits"]
    assert {hit["passage"]["document_id"] for hit in kept} == {other}
    assert "empty" in server.get("/library/search", q=" ", status=400)["error"]
    server.get("/library/search", q="ice", collection="none", status=404)


def test_search_in_all_collections(server):
    results = server.get("/library/search", q="brightness of the Sun", mode="bm25", limit=1)
    assert (len(results["hits"]), results["more"], results["not_searched"]) == (1, True, [])


def test_a_question_is_answered_with_its_sources(server):
    begun = server.post("/questions", {"question": "Why is ice white?"}, role="annotator", status=202)
    server.ended(begun["id"])
    done = server.get(f"/questions/{begun['id']}")
    assert done["state"] in ("done", "failed")
    assert (done["answer"] is None) == (done["error"] is not None)
    if done["answer"]:
        assert {"text", "sentences", "sources"} <= set(done["answer"])
    assert "Why is ice white?" in server.page(done["page"])
    assert "no collection 'none'" in server.post(
        "/questions", {"question": "Why?", "collections": ["none"]}, status=400
    )["error"]  # fmt: skip
    server.get("/questions/none", status=404)


def test_a_claim_is_checked_and_its_debate_is_returned(server):
    begun = server.post("/checks", {"claim": SUN, "date": "15 May 2023"}, role="annotator", status=202)
    check = begun["id"]
    server.ended(get_check_store(server.place).get(check).about.job)
    done = server.get(f"/checks/{check}")
    assert [done[name] for name in ("state", "verdict", "by")] == ["done", "incorrect", "annotator"]
    assert done["date"] == "2023-05-15"
    assert done["claim"] in server.page(done["page"])
    transcript = server.get(f"/checks/{check}/transcript")
    assert from_data(transcript["transcript"]) == get_check_store(server.place).get(check).transcript
    assert transcript["settings"]["model"] == "local:scripted"
    assert "the limit is 2,000" in server.post("/checks", {"claim": "x" * 2001}, status=400)["error"]
    assert "no set-up 'x'" in server.post("/checks", {"claim": SUN, "setup": "x"}, status=400)["error"]
    server.get("/checks/none", status=404)
    server.get("/checks/none/transcript", status=404)


def test_checks_are_filtered(server):
    assert server.content.check in [entry["id"] for entry in server.get("/checks", q="carbon sun")["items"]]
    assert server.get("/checks", q="carbon sun", verdict="correct")["items"] == []


def test_the_sentences_of_a_text_are_compared_with_collections(server):
    text = {"text": "The Sun is bright. Ice is cold.", "collections": [COLLECTION]}
    result = server.post("/check-text", text, role="annotator")
    assert [sentence["text"] for sentence in result["sentences"]] == ["The Sun is bright.", "Ice is cold."]
    assert result["collections"] == [COLLECTION]
    server.post("/check-text", text | {"collections": ["none"]}, status=404)
    server.post("/check-text", text | {"text": " "}, status=400)


def test_runs_with_their_configuration(server):
    with server.place.records.run("ask", {"question": "What melts?"}) as run:
        ask(server.place.records, run, "What melts?")
    entries = server.get("/runs", limit=200)["items"]
    assert [entry["id"] for entry in entries] == [entry.id for entry in list_runs(server.place.database)][::-1]
    assert [entry["id"] for entry in server.get("/runs", command="evaluate run")["items"]] == [server.content.run]
    details, known = server.get(f"/runs/{run.id}"), run_details(server.place.database, run.id)
    assert (details["run"]["sent"], details["run"]["models"]) == (1, [known.usage[0].model])
    assert details["config"] == known.config


def test_tables_of_a_run_are_those_of_its_page(server):
    tables = server.get(f"/runs/{server.content.run}/tables")["items"]
    page = server.page(f"/results/{server.content.run}?wait=true&show=tables")
    plain = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert len(tables) >= 3
    for table in tables:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
        assert table["title"] in plain
        assert f"/results/{server.content.run}/tables/{table['number']}.csv" in page


def test_labels_are_exported_and_imported_as_files(server):
    source, _ = (fill(server.place, dataset=name, overlap=2) for name in ("source", "target"))
    source.label("source", Label("q2", "ada", accepted=True, key="k1"))
    source.label("source", Label("q5", "bob", accepted=False, reasons=("wrong answer",), key="k2"))
    source.comment("source", "q2", "ada", "Why?", key="c1")
    names = [entry["dataset"] for entry in server.get("/annotate/datasets")["items"]]
    assert names == sorted(names)
    assert {DATASET, "source", "target"} <= set(names)
    exported = server.file("/annotate/datasets/source/export", role="adjudicator")
    for counts in ((2, 0, 1), (0, 2, 0)):
        result = server.upload("/annotate/datasets/target/import", "labels.jsonl", exported)
        assert (result["stored"], result["known"], result["comments"], result["refused"]) == (*counts, [])
    assert b"ada" in server.file("/annotate/datasets/target/export?format=csv", role="adjudicator")
    packed = server.file("/annotate/datasets/target/export?format=label-studio", role="adjudicator")
    assert zipfile.ZipFile(io.BytesIO(packed)).namelist()
    server.upload("/annotate/datasets/target/import", "labels.exe", exported, status=400)
    server.get("/annotate/datasets/none/export", role="adjudicator", status=404)


@pytest.mark.process
def test_the_client_of_the_guide_works(tmp_path):
    [program] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "client.py").write_text(program, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as sock:
        settings = ServerSettings(port=sock.getsockname()[1], **settings_of(tmp_path))
        state = AppState(Workspace.open(tmp_path / "workspace"), settings)
        furnish(state)
        with serving(state, sock) as server:
            [token] = bearer(state, "annotator").values()
            variables = {"CLIMASSAY_SERVER": server.url, "CLIMASSAY_TOKEN": token.removeprefix("Bearer ")}
            done = subprocess.run(
                [sys.executable, str(tmp_path / "client.py")],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
    assert done.stderr == ""
    assert re.fullmatch(rf"incorrect: The Sun.* {re.escape(server.url)}/checks/c[0-9a-f]{{12}}\n", done.stdout)
