import json

import pytest

from annotated_drafts import DATASET, EDITED, VALID, begin
from climassay.errors import InputError
from climassay.generation import Wording
from climassay.generation.annotation import ANNOTATION_REASONS, AnnotationStore
from climassay.integrations.labelling_tools import argilla_settings, read_argilla, write_argilla
from climassay.records import Records
from generated_drafts import draft, rejected

DRAFTS = [draft(0), draft(1, "mcq"), draft(2, "cloze"), draft(3)]
BY_ID = {one.id: one for one in DRAFTS}
ANN, BOB = "6b1b3e0c-5a0e-4d6c-9a44-5f43a2f1f7b1", "0d7f7c11-11c0-4e7b-8f3a-0a2f6a9b0c22"
USERS = {"ann": ANN, "bob": BOB}


@pytest.fixture
def stores(tmp_path):
    with (
        Records(f"sqlite:///{tmp_path / 'a.sqlite'}") as first,
        Records(f"sqlite:///{tmp_path / 'b.sqlite'}") as second,
    ):
        for records in (first, second):
            begin(records, DRAFTS)
        yield AnnotationStore(first), AnnotationStore(second)


@pytest.fixture
def annotated(stores):
    store = stores[0]
    store.label(DATASET, "q0000", "ann", key="1", **EDITED)
    better = Wording("Which one?", "", ("a b", "c", "d"), 1)
    store.label(DATASET, "q0001", "ann", key="2", accepted=True, wording=better)
    store.label(DATASET, "q0002", "bob", key="3", accepted=True, wording=Wording(DRAFTS[2].wording.question, "high"))
    store.label(DATASET, "q0003", "bob", key="4", accepted=False, reasons=["other", "bad context"], remark="No.")
    return store


def said(labels):
    return sorted((one.draft, one.annotator, one.accepted, set(one.reasons), one.remark, one.wording) for one in labels)


def read(tmp_path, records, users=None):
    file = tmp_path / "records.json"
    file.write_text(json.dumps(records), encoding="utf-8")
    return read_argilla(file, BY_ID, users)


def test_labels_go_there_and_come_into_another_workspace(annotated, stores, tmp_path):
    assert write_argilla(tmp_path, "silver", annotated.items(DATASET), users=USERS) == (4, 4)
    found = read_argilla(tmp_path, BY_ID, USERS)
    assert found.unreadable == ()
    for stored, known in ((4, 0), (0, 4)):
        taken = stores[1].import_labels(DATASET, found.labels)
        assert (taken.stored, taken.known) == (stored, known)
    assert said(stores[1].labels(DATASET)) == said(annotated.labels(DATASET))
    assert annotated.import_labels(DATASET, found.labels).known == 4, "what comes back as it went is no new label"


def test_a_folder_is_what_argilla_reads(annotated, tmp_path):
    write_argilla(tmp_path, "silver", annotated.items(DATASET), overlap=2, users=USERS)
    dataset, settings, records = (
        json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("dataset", "settings", "records")
    )
    assert (dataset["name"], dataset["distribution"]) == ("silver", {"strategy": "overlap", "min_submitted": 2})
    questions = {question["name"]: question["settings"] for question in settings["questions"]}
    fields = {field["name"]: field for field in settings["fields"]}
    for record in records:
        assert set(record["fields"]) <= set(fields)
        assert all(record["fields"].get(name) for name, field in fields.items() if field["required"])
        for name, answers in {**record["responses"], **record["suggestions"]}.items():
            assert name in questions
            for answer in answers if isinstance(answers, list) else [answers]:
                options = [option["value"] for option in questions[name].get("options", ())]
                values = answer["value"] if isinstance(answer["value"], list) else [answer["value"]]
                assert not options or set(values) <= set(options)
    assert {answer["status"] for record in records for answer in record["responses"]["verdict"]} == {"submitted"}


def test_answers_of_people_whom_argilla_does_not_know_stay_here(annotated, tmp_path):
    assert write_argilla(tmp_path, "silver", annotated.items(DATASET)) == (4, 0)
    assert write_argilla(tmp_path, "silver", annotated.items(DATASET), users={"bob": BOB}) == (4, 2)
    with pytest.raises(InputError, match="not an id of a user in Argilla"):
        write_argilla(tmp_path, "silver", annotated.items(DATASET), users={"bob": "bob"})


def test_the_masker_and_the_screening_make_suggestions(tmp_path):
    from climassay.generation.annotation import AnnotationSettings

    with Records(f"sqlite:///{tmp_path / 'c.sqlite'}") as records:
        begin(records, [draft(2, "cloze"), rejected(draft(3), "context reference")])
        store = AnnotationStore(records)
        store.configure(DATASET, AnnotationSettings(include_rejected=True))
        write_argilla(tmp_path, "silver", store.items(DATASET))
    written = json.loads((tmp_path / "records.json").read_text(encoding="utf-8"))
    suggested = {record["id"]: record["suggestions"] for record in written}
    assert suggested["q0002"]["edited_answer"]["value"] == "albedo"
    assert suggested["q0003"]["reasons"]["value"] == ["context reference"]


def test_only_submitted_answers_count_and_strangers_keep_their_ids(tmp_path):
    def answer(value, user, **fields):
        return {"value": value, "user_id": user, **fields}

    records = [
        {"id": "q0000", "responses": {"verdict": [answer("valid", ANN, status="draft"), answer("valid", BOB)]}},
        {
            "id": "q0001",
            "responses": {
                "verdict": [answer("invalid", ANN, status="submitted")],
                "reasons": [answer(["wrong answer"], ANN, status="submitted")],
            },
        },
        {"id": "q0002", "responses": {}},
        {"id": "q0009", "responses": {"verdict": [answer("valid", ANN)]}},
    ]
    found = read(tmp_path, records, {"bob": BOB})
    assert [(one.draft, one.annotator) for one in found.labels] == [("q0000", "bob"), ("q0001", f"argilla:{ANN}")]
    assert found.labels[1].reasons == ("wrong answer",)
    [line] = found.unreadable
    assert "q0009" in line


@pytest.mark.parametrize(
    "text", ["{}", "[1]", "no json", '[{"id": "q"}]'], ids=["object", "number", "text", "no answers"]
)
def test_what_holds_no_records_is_refused(text, tmp_path):
    file = tmp_path / "records.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="no records of Argilla"):
        read_argilla(file, BY_ID)


def test_the_reasons_are_those_of_the_queue():
    questions = {question["name"]: question for question in argilla_settings()["questions"]}
    names = [option["value"] for option in questions["reasons"]["settings"]["options"]]
    assert names == [reason.name for reason in ANNOTATION_REASONS]
    assert VALID["accepted"] is True
