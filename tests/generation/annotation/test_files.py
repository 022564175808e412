import csv
from dataclasses import replace

import pytest

from annotated_drafts import DATASET, EDITED, VALID, WRONG, begin
from climassay.errors import InputError
from climassay.generation import Wording
from climassay.generation.annotation import (
    AnnotationSettings,
    AnnotationStore,
    Label,
    read_annotations,
    read_table,
    write_annotations,
    write_table,
)
from climassay.records import Records
from generated_drafts import draft

DRAFTS = [draft(0), draft(1, "mcq"), draft(2, "cloze"), draft(3)]


@pytest.fixture
def store(tmp_path):
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as records:
        begin(records, DRAFTS)
        yield AnnotationStore(records)


@pytest.fixture
def other(tmp_path):
    """The same drafts in another workspace."""
    with Records(f"sqlite:///{tmp_path / 'other.sqlite'}") as records:
        begin(records, DRAFTS)
        yield AnnotationStore(records)


@pytest.fixture
def annotated(store):
    store.configure(DATASET, AnnotationSettings(overlap=2, hide_confidence=False, seed=3))
    store.label(DATASET, Label("q0000", "ann", key="1", **WRONG))
    store.label(DATASET, Label("q0000", "ann", key="2", seconds=2.5, **EDITED))
    store.label(DATASET, Label("q0000", "bob", key="3", **VALID))
    store.label(
        DATASET,
        Label(
            "q0000", "eve", key="4", accepted=False, reasons=["other"], remark="=1+1; 'é'\u2028\x85", adjudicates=True
        ),
    )
    mcq = DRAFTS[1].wording
    better = Wording("Which one, exactly?", "", ("a\nb", "c", "d", "e"), 2)
    store.label(DATASET, Label("q0001", "ann", key="5", accepted=True, wording=better))
    store.label(
        DATASET, Label("q0002", "ann", key="6", accepted=True, wording=Wording(DRAFTS[2].wording.question, "planets"))
    )
    store.skip(DATASET, "q0003", "ann")
    assert mcq.options != better.options
    return store


def drafts(store):
    return {item.draft.id: item.draft for item in store.items(DATASET)}


def said(labels):
    return [
        (one.draft, one.annotator, one.accepted, one.reasons, one.remark, one.wording, one.adjudicates)
        for one in sorted(labels, key=lambda one: (one.draft, one.annotator))
    ]


def test_our_format_loses_nothing(annotated, other, tmp_path):
    file = tmp_path / "labels.jsonl"
    everything = annotated.labels(DATASET, current=False)
    annotated.comment(DATASET, "q0000", "ann", "See page 2.", key="c1")
    annotated.comment(DATASET, "q0000", "eve", "Seen.", key="c2", adjudicates=True)
    skipped, comments = annotated.skips(DATASET), annotated.comments(DATASET)
    count = write_annotations(file, DATASET, annotated.settings(DATASET), everything, skipped, comments)
    assert count == 6
    found = read_annotations(file)
    assert found.settings == annotated.settings(DATASET)
    other.configure(DATASET, found.settings)
    taken = other.import_labels(DATASET, found.labels, found.skips, found.comments)
    assert (taken.stored, taken.known, taken.comments, taken.refused) == (6, 0, 2, ())
    assert other.comments(DATASET) == comments
    assert other.labels(DATASET, current=False) == everything
    assert other.skips(DATASET) == annotated.skips(DATASET)
    assert list(other.items(DATASET)) == list(annotated.items(DATASET))
    assert list(other._datasets.drafts(DATASET)) == list(annotated._datasets.drafts(DATASET))
    again = other.import_labels(DATASET, found.labels, found.skips, found.comments)
    assert (again.stored, again.known, again.comments) == (0, 6, 0)
    assert other.labels(DATASET, current=False) == everything


def test_a_table_goes_to_another_workspace_and_back(annotated, other, tmp_path):
    file = tmp_path / "labels.csv"
    assert write_table(file, annotated.items(DATASET)) == 5
    rows = list(csv.DictReader(file.open(encoding="utf-8", newline="")))
    assert [row["draft"] for row in rows if not row["annotator"]] == ["q0003"]
    assert not any(value.startswith(("=", "+", "-", "@")) for row in rows for value in row.values())
    other.configure(DATASET, annotated.settings(DATASET))
    found = read_table(file, drafts(other))
    assert found.unreadable == ()
    assert other.import_labels(DATASET, found.labels).stored == 5
    assert said(other.labels(DATASET)) == said(annotated.labels(DATASET))
    assert annotated.import_labels(DATASET, found.labels).known == 5


def test_a_table_of_somebody_elses_spreadsheet(store, tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text(
        "draft,annotator,label,reasons,edited_answer\n"
        "q0000,dora,invalid,bad context; wrong answer,\n"
        "q0002,dora,VALID,,high\n"
        "q0003,,,,\n"
        "q0001,dora,perhaps,,\n"
        "q0009,dora,valid,,\n"
        "q0003,dora,invalid,,\n",
        encoding="utf-8",
    )
    found = read_table(file, drafts(store))
    assert [line.split(": ", 1)[0] for line in found.unreadable] == ["labels.csv, row 4", "labels.csv, row 5"]
    taken = store.import_labels(DATASET, found.labels)
    assert taken.stored == 2
    [refused] = taken.refused
    assert "Say why" in refused
    assert store.item(DATASET, "q0002").labels[0].wording.answer == "high"
    again = store.import_labels(DATASET, read_table(file, drafts(store)).labels)
    assert (again.stored, again.known) == (0, 2)


def test_of_two_labels_the_later_counts_whatever_their_order(store):
    early = Label("q0000", "ann", True, made_at=10.0, key="early")
    late = Label("q0000", "ann", False, ("wrong answer",), made_at=20.0, key="late")
    store.import_labels(DATASET, [late])
    store.import_labels(DATASET, [early])
    store.import_labels(DATASET, [replace(early, draft="q0003", key="e"), replace(late, draft="q0003", key="l")][::-1])
    assert [label.key for label in store.labels(DATASET, draft="q0003")] == ["l"]
    store.undo(DATASET, "ann")
    assert [label.key for label in store.labels(DATASET)] == ["late"]
    assert len(store.labels(DATASET, current=False)) == 4
    store.label(DATASET, Label("q0000", "ann", key="now", **VALID))
    assert store.import_labels(DATASET, [late]).known == 1
    assert [label.key for label in store.labels(DATASET)] == ["now"]


def test_a_label_that_was_withdrawn_elsewhere_is_withdrawn_here(store):
    label = Label("q0000", "ann", True, made_at=10.0, key="k")
    store.import_labels(DATASET, [label])
    gone = Label("q0000", "ann", True, made_at=10.0, withdrawn_at=11.0, key="k")
    assert store.import_labels(DATASET, [gone]).withdrawn == 1
    assert store.item(DATASET, "q0000").state == "open"
    assert store.import_labels(DATASET, [label]).known == 1, "and does not come back"
    assert store.labels(DATASET) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not a climassay annotation"),
        ("{}", "not a file of annotations"),
        ('{"format": "climassay-annotations", "version": 3, "settings": {}}', "version 3"),
        ('{"format": "climassay-annotations", "version": 1, "settings": {"colour": 1}}', "line 1"),
        ('{"format": "climassay-annotations", "version": 1, "settings": {}}\n{"label": {"draft": "q"}}', "line 2"),
        ('{"format": "climassay-annotations", "version": 1, "settings": {}}\n{"comment": {"draft": "q"}}', "line 2"),
        ('{"format": "climassay-annotations", "version": 1, "settings": {}}\n[1', "line 2"),
    ],
    ids=["empty", "something else", "newer", "unknown setting", "half a label", "half a comment", "broken"],
)
def test_what_is_no_file_of_annotations_is_told(text, sentence, tmp_path):
    file = tmp_path / "labels.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        read_annotations(file)
