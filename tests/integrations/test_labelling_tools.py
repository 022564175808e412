import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from annotated_drafts import DATASET, EDITED, VALID, begin
from climassay.errors import InputError
from climassay.generation import Wording
from climassay.generation.annotation import ANNOTATION_REASONS, AnnotationSettings, AnnotationStore, Label
from climassay.integrations.labelling_tools import read_argilla, read_label_studio, write_argilla, write_label_studio
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
    store.label(DATASET, Label("q0000", "ann", key="1", seconds=2.5, **EDITED))
    better = Wording("Which one?", "", ("a b", "c", "d"), 1)
    store.label(DATASET, Label("q0001", "ann", key="2", accepted=True, wording=better))
    store.label(
        DATASET, Label("q0002", "bob", key="3", accepted=True, wording=Wording(DRAFTS[2].wording.question, "high"))
    )
    store.label(
        DATASET, Label("q0003", "bob", key="4", accepted=False, reasons=["other", "bad context"], remark="<b>No</b>")
    )
    return store


def exported(results, **fields):
    """A task as Label Studio exports it."""
    plain = {
        "id": 7, "completed_by": {"id": 3, "email": "dora@example.org", "first_name": "", "last_name": ""},
        "was_cancelled": False, "ground_truth": False, "created_at": "2026-03-09T22:16:08.728353Z",
        "updated_at": "2026-03-09T22:16:08.728378Z", "lead_time": 4.288, "task": 1, "result": results,
    }  # fmt: skip
    return [{"id": 1, "data": {"draft": "q0000"}, "annotations": [plain | fields], "predictions": []}]


def chosen(name, *values):
    value = {"choices": list(values)}
    return {"id": "Dx", "from_name": name, "to_name": "question", "type": "choices", "value": value, "origin": "manual"}


def written(name, *values):
    return {"id": "Dy", "from_name": name, "to_name": "question", "type": "textarea", "value": {"text": list(values)}}


def read(tmp_path, tasks):
    file = tmp_path / "export.json"
    file.write_text(json.dumps(tasks), encoding="utf-8")
    return read_label_studio(file, BY_ID)


def test_every_answer_of_a_task_has_its_tag_and_every_field_its_text(annotated, tmp_path):
    write_label_studio(tmp_path, annotated.items(DATASET))
    view = ElementTree.fromstring((tmp_path / "interface.xml").read_text(encoding="utf-8"))
    tags = {tag.get("name"): tag for tag in view.iter() if tag.get("name")}
    tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    shown = {tag.get("value")[1:] for tag in tags.values() if tag.tag == "Text"}
    for task in tasks:
        assert shown <= set(task["data"])
        assert all(isinstance(task["data"][name], str) for name in shown)
        for annotation in task["annotations"]:
            assert "completed_by" not in annotation, "Label Studio refuses annotators that it does not know"
            for result in annotation["result"]:
                tag = tags[result["from_name"]]
                assert (tag.tag.lower(), tag.get("toName")) == (result["type"], result["to_name"])
    names = [choice.get("alias") for choice in tags["reasons"]]
    assert names == [reason.name for reason in ANNOTATION_REASONS]


def test_labels_go_to_label_studio_and_come_into_another_workspace(annotated, stores, tmp_path):
    broken = Wording("Which one?", "", ("a\nb", "c", "d"), 1)
    annotated.label(DATASET, Label("q0001", "ann", key="5", accepted=True, wording=broken))
    assert write_label_studio(tmp_path, annotated.items(DATASET)) == 4
    found = read_label_studio(tmp_path / "tasks.json", BY_ID)
    assert found.unreadable == ()
    assert stores[1].import_labels(DATASET, found.labels).stored == 4
    key = lambda label: label.key  # noqa: E731
    assert sorted(stores[1].labels(DATASET), key=key) == sorted(annotated.labels(DATASET), key=key)
    assert annotated.import_labels(DATASET, found.labels).known == 4


def test_a_label_that_was_changed_there_is_a_new_one(annotated, tmp_path):
    write_label_studio(tmp_path, annotated.items(DATASET))
    file = tmp_path / "tasks.json"
    tasks = json.loads(file.read_text(encoding="utf-8"))
    [task] = [task for task in tasks if task["data"]["draft"] == "q0003"]
    task["annotations"][0] |= {"id": 9, "completed_by": 4, "updated_at": "2100-01-01T00:00:00Z"}
    task["annotations"][0]["result"][2]["value"]["text"] = ["Another remark."]
    file.write_text(json.dumps(tasks), encoding="utf-8")
    for stored in (1, 0):
        assert annotated.import_labels(DATASET, read_label_studio(file, BY_ID).labels).stored == stored
    assert [(one.annotator, one.remark) for one in annotated.item(DATASET, "q0003").labels] == [
        ("bob", "<b>No</b>"),
        ("label-studio:4", "Another remark."),
    ]


def test_an_export_is_read(tmp_path):
    words = ANNOTATION_REASONS[0].words
    found = read(tmp_path, exported([chosen("verdict", "invalid"), chosen("reasons", words, "wrong answer")]))
    [label] = found.labels
    assert (label.annotator, label.accepted, label.seconds) == ("dora@example.org", False, 4.288)
    assert label.reasons == ("bad context", "wrong answer")
    assert label.made_at == pytest.approx(1773094568.728378)
    found = read(tmp_path, exported([chosen("verdict", "valid"), written("edited_answer", "It shrinks.")]))
    assert found.labels[0].wording == Wording(DRAFTS[0].wording.question, "It shrinks.")
    assert found.labels[0].key != label.key


def test_annotations_that_are_no_list_are_refused(tmp_path):
    tasks = exported([chosen("verdict", "valid")])
    for task in tasks:
        task["annotations"] = True
    with pytest.raises(InputError, match="annotations of a task are a list"):
        read(tmp_path, tasks)


def test_what_was_cancelled_or_says_nothing_is_passed_over(tmp_path):
    assert read(tmp_path, exported([chosen("verdict", "valid")], was_cancelled=True)).labels == ()
    assert read(tmp_path, exported([written("remark", "Hm.")])).labels == ()
    assert read(tmp_path, exported([])).labels == ()


def test_what_makes_no_label_is_told(tmp_path):
    tasks = [
        *exported([chosen("verdict", "perhaps")]),
        *exported([{"from_name": "verdict"}]),
        {"data": {"draft": "q9"}, "annotations": [{"result": [chosen("verdict", "valid")]}]},
    ]
    found = read(tmp_path, tasks)
    assert found.labels == ()
    assert [line.split(":")[0] for line in found.unreadable] == [f"export.json, task {number}" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("read", "said"),
    [(read_label_studio, "not an export of Label Studio"), (read_argilla, "no records of Argilla")],
    ids=["label studio", "argilla"],
)
@pytest.mark.parametrize("text", ["{}", "[1]", "no json", '[{"id": 1}]'], ids=["object", "number", "text", "half"])
def test_what_is_no_export_is_refused(text, read, said, tmp_path):
    file = tmp_path / "export.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read(file, BY_ID)


def test_confidence_is_shown_only_where_it_is_wanted(stores, tmp_path):
    store = stores[0]
    store.label(DATASET, Label("q0001", "ann", key="k", **VALID))
    first, *others = store.items(DATASET)
    items = [replace(first, p_valid=0.2), *others]
    for confidence, expected in ((False, []), (True, [0.2])):
        write_label_studio(tmp_path, items, confidence=confidence)
        tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
        assert [one["score"] for task in tasks for one in task.get("predictions", ())] == expected


def said(labels):
    return sorted((one.draft, one.annotator, one.accepted, set(one.reasons), one.remark, one.wording) for one in labels)


def read_records(tmp_path, records, users=None):
    file = tmp_path / "records.json"
    file.write_text(json.dumps(records), encoding="utf-8")
    return read_argilla(file, BY_ID, users)


def test_labels_go_to_argilla_and_come_into_another_workspace(annotated, stores, tmp_path):
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
    found = read_records(tmp_path, records, {"bob": BOB})
    assert [(one.draft, one.annotator) for one in found.labels] == [("q0000", "bob"), ("q0001", f"argilla:{ANN}")]
    assert found.labels[1].reasons == ("wrong answer",)
    [line] = found.unreadable
    assert "q0009" in line
