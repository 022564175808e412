"""Taking labels out and in through the browser, and training on them."""

import csv
import io
import json
import re
import zipfile

import pytest

from annotated_dataset import DATASET, draft, fill, source
from climassay.generation import Wording
from climassay.generation.annotation import Label
from climassay.web.annotate import views as retraining
from patience import job_at_its_end
from topic_encoder import TopicEncoder
from web_parts import csrf_of

HOME = f"/annotate/{DATASET}"


@pytest.fixture
def queue(place):
    """Three labels, one of them withdrawn."""
    store = fill(place)
    store.label(DATASET, Label("q1", "ann", accepted=False, reasons=["other"], remark="=cmd()", seconds=4, key="k1"))
    store.label(DATASET, Label("q2", "ann", accepted=True, wording=Wording("Why so?", "So."), key="k2"))
    store.label(DATASET, Label("q3", "ann", accepted=True, key="k3"))
    store.undo(DATASET, "ann")
    return store


def send(client, content, name="labels.jsonl", format="jsonl"):
    data = {"csrf": csrf_of(client), "format": format}
    return client.post(f"{HOME}/import", data=data, files={"file": (name, content)})


def test_everything_comes_back_from_our_own_format(queue, client_of):
    assert f'href="{HOME}/export?format=jsonl"' in client_of("adjudicator").get(f"{HOME}/export").text
    answer = client_of("adjudicator").get(f"{HOME}/export?format=jsonl")
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{DATASET}-labels.jsonl"
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["label"]["key"] for row in rows if "label" in row] == ["k1", "k2", "k3"]
    before = queue.labels(DATASET, current=False)
    page = send(client_of("admin"), answer.content)
    assert "0 labels were imported; 3 were here already" in page.text
    assert queue.labels(DATASET, current=False) == before


def test_a_table_of_another_server_is_taken_in_once(queue, client_of):
    answer = client_of("adjudicator").get(f"{HOME}/export?format=csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["remark"] for row in rows if row["draft"] == "q1"] == ["'=cmd()"]
    added = "draft,annotator,label,reasons\nq4,bob,invalid,wrong answer\nq9,bob,valid,\n"
    admin = client_of("admin")
    page = send(admin, added, "theirs.CSV", "csv")
    assert "1 label was imported; 0 were here already" in page.text
    assert "1 could not be imported" in page.text
    assert "no item &#39;q9&#39;" in page.text
    assert "1 was here already" in send(admin, added, "theirs.CSV", "csv").text
    assert [label.reasons for label in queue.labels(DATASET, annotator="bob")] == [("wrong answer",)]


@pytest.mark.parametrize(("format", "name"), [("label-studio", "tasks.json"), ("argilla", "records.json")])
def test_what_another_tool_takes_comes_as_an_archive_and_back(queue, client_of, format, name):
    answer = client_of("adjudicator").get(f"{HOME}/export?format={format}")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        given = packed.read(name)
    page = send(client_of("admin"), given, name, format)
    assert page.status_code == 200
    assert format == "argilla" or "2 were here already" in page.text


@pytest.mark.parametrize(
    ("content", "name", "format", "sentence"),
    [
        (b"{}", "labels.jsonl", "jsonl", "not a file of annotations"),
        (b"\xff\xfe", "labels.jsonl", "jsonl", "The file, line 1"),
        (b"a,b\n1,2\n", "../../etc/passwd.csv", "csv", "The file is not a table of labels"),
        (b"{}", "labels.exe", "jsonl", "ends in"),
        (b"{}", "labels.json", "word", "There is no format"),
        (b"{}", "labels.json", "argilla", "The file holds no records"),
    ],
    ids=["not ours", "no text", "no table", "ending", "format", "no records"],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_sentence(queue, client_of, content, name, format, sentence):
    before = queue.labels(DATASET, current=False)
    page = send(client_of("admin"), content, name, format)
    assert page.status_code == 400
    assert sentence in page.text
    assert "/tmp" not in page.text
    assert queue.labels(DATASET, current=False) == before


def test_an_unknown_format_is_not_given_out(queue, client_of):
    assert client_of("adjudicator").get(f"{HOME}/export?format=xlsx").status_code == 400


def train(client, place):
    answer = client.post(f"{HOME}/retrain", data={"csrf": csrf_of(client)})
    assert answer.headers["location"] == f"{HOME}/settings#retraining"
    return job_at_its_end(place.jobs, place.jobs.list("retrain")[0].id)


def test_a_training_reads_the_labels_and_judges_what_waits(place, client_of, monkeypatch):
    monkeypatch.setattr("climassay.models.encoders.load_encoder", TopicEncoder)
    # A validator is measured on passages that it was not trained on, several times over.
    drafts = [
        draft(("q1", "q2")[number % 2], id=f"n{number}", passages=(source(number, f"Part {number}: clouds."),))
        for number in range(14)
    ]
    queue = fill(place, drafts, retrain_every=12)
    admin = client_of("admin")
    assert "Train the validator again" not in admin.get("/annotate").text
    for number in range(12):
        said = {"accepted": True} if number % 4 < 2 else {"accepted": False, "reasons": ["bad context"]}
        queue.label(DATASET, Label(f"n{number}", "ann", **said, key=f"k{number}"))
    assert "Train the validator again" in admin.get("/annotate").text
    assert "Enough new labels to train again" in admin.get(f"{HOME}/settings").text
    job = train(admin, place)
    assert (job.state, job.error) == ("done", None)
    assert queue.item(DATASET, "n13").p_valid is not None
    assert queue.new_labels(DATASET) == 0
    page = admin.get(f"{HOME}/settings").text
    assert re.search(r"data-job-state>done<", page)
    assert "Training is offered at 12." in page


def test_a_training_that_waits_is_not_asked_for_twice(queue, place, client_of):
    first = place.jobs.submit("retrain", "Train", {"dataset": "another"})
    assert not [job for job in retraining.list_trainings(place, DATASET) if not job.has_ended]
    second = place.jobs.submit("retrain", "Train", {"dataset": DATASET})
    for job in (first, second):
        job_at_its_end(place.jobs, job)
    assert not [job for job in retraining.list_trainings(place, DATASET) if not job.has_ended]
    assert [job.id for job in retraining.list_trainings(place, DATASET)] == [second]
