import json
from xml.etree import ElementTree

import pytest

from annotated_drafts import DATASET, EDITED, VALID, begin
from climassay.errors import InputError
from climassay.generation import Wording
from climassay.generation.annotation import ANNOTATION_REASONS, AnnotationStore
from climassay.integrations.labelling_tools import interface, read_label_studio, write_label_studio
from climassay.records import Records
from generated_drafts import draft

DRAFTS = [draft(0), draft(1, "mcq"), draft(2, "cloze"), draft(3)]
BY_ID = {one.id: one for one in DRAFTS}


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
    store.label(DATASET, "q0000", "ann", key="1", seconds=2.5, **EDITED)
    better = Wording("Which one?", "", ("a\nb", "c", "d"), 1)
    store.label(DATASET, "q0001", "ann", key="2", accepted=True, wording=better)
    store.label(DATASET, "q0002", "bob", key="3", accepted=True, wording=Wording(DRAFTS[2].wording.question, "high"))
    store.label(DATASET, "q0003", "bob", key="4", accepted=False, reasons=["other", "bad context"], remark="<b>No</b>")
    return store


def exported(results, **fields):
    """A task as Label Studio exports it."""
    plain = {
        "id": 7,
        "completed_by": {"id": 3, "email": "dora@example.org", "first_name": "", "last_name": ""},
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2026-03-09T22:16:08.728353Z",
        "updated_at": "2026-03-09T22:16:08.728378Z",
        "lead_time": 4.288,
        "task": 1,
        "result": results,
    }
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


def test_labels_go_there_and_come_into_another_workspace(annotated, stores, tmp_path):
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


@pytest.mark.parametrize("text", ["{}", "[1]", "no json", '[{"id": 1}]'], ids=["object", "number", "text", "no data"])
def test_what_is_no_export_is_refused(text, tmp_path):
    file = tmp_path / "export.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="not an export of Label Studio"):
        read_label_studio(file, BY_ID)


def test_confidence_is_shown_only_where_it_is_wanted(stores, tmp_path):
    store = stores[0]
    store.reorder(DATASET, {"q0000": 0.2})
    store.label(DATASET, "q0001", "ann", key="k", **VALID)
    for confidence, expected in ((False, []), (True, [0.2])):
        write_label_studio(tmp_path, store.items(DATASET), confidence=confidence)
        tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
        assert [one["score"] for task in tasks for one in task.get("predictions", ())] == expected


def test_the_interface_is_one_view():
    assert ElementTree.fromstring(interface()).tag == "View"
