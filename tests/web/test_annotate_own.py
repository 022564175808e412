"""Questions and answers that people bring: opened as a queue, assigned, labelled and taken out again."""

import csv
import io
import json

import pytest

from climassay import annotate_answers, annotate_questions
from climassay.errors import InputError
from climassay.generation.annotation import AnnotationStore, Label
from html_pages import Page
from stored_runs import store_experiment
from web_parts import csrf_of, post

QUESTIONS = [
    {"id": "a/1 ?", "question": "Which gas?", "A": "Nitrogen", "B": "Carbon dioxide", "answer": "B"},
    {"id": "a/2", "question": "Why <so>?", "answer": "Because.", "passage": "It rests on this.", "document": "A book"},
    {"id": "a/3", "question": "Bright surfaces have a high <MASK>.", "answer": "albedo"},
    {"id": "a/4", "statement": "Ice melts.", "label": "true"},
    {"id": "a/5", "question": "No answer for options", "A": "x", "B": "y", "answer": "z"},
]
FILE = "\n".join(json.dumps(row) for row in QUESTIONS).encode()


def begin(client, content=FILE, file="mine.jsonl", **fields):
    data = {"csrf": csrf_of(client), "name": "mine", "overlap": "1"} | fields
    return client.post("/annotate", data=data, files={"file": (file, content)})


@pytest.fixture
def store(place):
    return AnnotationStore(place.records)


def test_a_file_becomes_a_queue_and_comes_back_as_accepted_questions(place, store, client_of):
    answer = begin(client_of("admin"))
    assert answer.status_code == 200
    page = Page(answer.text)
    assert "mine can be annotated now" in page.text
    assert "1 row of the file was left out" in page.text
    items = {item.draft.main.document_id: item for item in store.items("mine")}
    assert [*sorted(items)] == ["a/1 ?", "a/2", "a/3", "a/4"]
    annotator = client_of("annotator")
    for item in items.values():
        shown = annotator.get(f"/annotate/mine/{item.draft.id}")
        assert shown.status_code == 200
        assert ("No passage came with this question" in shown.text) == (item.draft.main.document_id != "a/2")
        assert "What came with it" in shown.text
    key = iter(range(9))
    says = {"a/1 ?": {"accepted": True}, "a/2": {"accepted": False, "reasons": ("two right answers",)}}
    for name, label in says.items():
        store.label("mine", Label(items[name].draft.id, "annotator", key=f"k{next(key)}", **label))
    edit = {"question": "Bright surfaces have a very high albedo.", "term": "albedo"}
    sent = {"key": "e", "verdict": "edit", **edit}
    assert post(annotator, f"/annotate/mine/{items['a/3'].draft.id}", sent).status_code == 303
    adjudicator = client_of("adjudicator")
    assert "/annotate/mine/export?format=questions" in Page(adjudicator.get("/annotate/mine/export").text).links
    got = adjudicator.get("/annotate/mine/export?format=questions")
    rows = [json.loads(line) for line in got.text.splitlines()]
    assert [(row["id"], row["question"], row["answer"]) for row in rows] == [
        ("a/1 ?", "Which gas?", "Carbon dioxide"),
        ("a/3", "Bright surfaces have a very high <MASK>.", "albedo"),
    ]
    table = adjudicator.get("/annotate/mine/export?format=csv").text
    labels = {row["source_id"]: row["label"] for row in csv.DictReader(io.StringIO(table))}
    assert labels == {"a/1 ?": "valid", "a/2": "invalid", "a/3": "valid", "a/4": ""}


@pytest.mark.parametrize(
    ("fields", "content", "file", "sentence"),
    [
        ({"name": "a/b"}, FILE, "mine.jsonl", "Name the queue"),
        ({"name": ""}, FILE, "mine.jsonl", "Name the queue"),
        ({}, FILE, "mine.exe", "file of questions ends in"),
        ({}, b"{", "mine.json", "The file"),
        ({}, b'{"question": "Why?", "rubric": "- Says why"}', "mine.jsonl", "only long-form questions"),
    ],
    ids=["a path", "no name", "a program", "no JSON", "long questions"],
)
def test_what_cannot_be_opened_is_a_sentence_and_makes_no_queue(
    place, store, client_of, fields, content, file, sentence
):
    answer = begin(client_of("admin"), content, file, **fields)
    assert answer.status_code == 400
    assert sentence in Page(answer.text).text
    assert "/tmp" not in answer.text
    assert store.queues() == []


def test_another_file_does_not_mix_with_a_queue_of_that_name(place, store, client_of):
    admin = client_of("admin")
    begin(admin)
    assert begin(admin, overlap="2").status_code == 200
    assert store.settings("mine").overlap == 2
    other = begin(admin, b"question,answer\nWhy?,So.\n", "other.csv")
    assert other.status_code == 400
    assert store.progress("mine").items == 4


def test_only_admins_open_queues(place, store, client_of):
    assert begin(client_of("adjudicator")).status_code == 403
    assert "New queue" not in client_of("adjudicator").get("/annotate").text
    assert store.queues() == []


def test_a_queue_is_for_those_whom_it_is_assigned_to(place, store, client_of):
    place.accounts.add("anna", "annotator")
    client_of("annotator")
    begin(client_of("admin"), annotator=["anna"])
    other = client_of("annotator")
    assert "mine" not in Page(other.get("/annotate").text).link_texts
    for address in ("", "/questions", "/history", "/guidelines"):
        assert other.get(f"/annotate/mine{address}").status_code == 403
    draft = next(store.items("mine")).draft.id
    assert post(other, f"/annotate/mine/{draft}", {"key": "k", "verdict": "valid"}).status_code == 403
    assert other.get("/api/v1/annotate/datasets").json()["items"] == []
    assert client_of("adjudicator").get("/annotate/mine").status_code == 200
    settings = {"overlap": "1", "minutes": "30", "retrain_every": "50", "order": "random", "annotator": "annotator"}
    assert post(client_of("admin"), "/annotate/mine/settings", settings).status_code == 303
    assert other.get("/annotate/mine").status_code == 200
    assert post(client_of("admin"), "/annotate/mine/settings", settings | {"annotator": []}).status_code == 303
    assert store.settings("mine").annotators == ()


def test_a_model_s_answers_are_judged_without_its_name(place, store, client_of):
    run = store_experiment(place.records)
    annotate_answers(run, "answers", overlap=2, workspace=place)
    items = list(store.items("answers"))
    assert len(items) == 27
    page = client_of("annotator").get(f"/annotate/answers/{items[0].draft.id}").text
    assert "Reference answer" in page
    assert items[0].draft.wording.answer in page
    for hidden in ("small", "large", "rag-source"):
        assert hidden not in page
    names = {item.draft.main.document_id for item in items}
    assert len(names) == 27
    assert any(name.endswith("| small | rag-source") for name in names)
    with pytest.raises(InputError, match="started with another recipe"):
        annotate_questions("primer", "answers", workspace=place)
