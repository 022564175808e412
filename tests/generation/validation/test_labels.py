import json
from collections import Counter
from pathlib import Path

import pytest

from climassay.errors import InputError
from climassay.generation import write_drafts
from climassay.generation.validation import read_label_set, reason_figure
from climassay.generation.validation.labels import labels_array, source_groups

PIRA = Path(__file__).parents[4] / "shared" / "data" / "pira_qa.csv"


@pytest.mark.skipif(not PIRA.is_file(), reason="the shared data folder is absent")
def test_pira_has_43_invalid_of_215_rated():
    found = read_label_set(PIRA)
    assert (len(found.drafts), found.unlabelled, found.skipped) == (215, 10, ())
    assert int(labels_array(found.drafts).sum()) == 215 - 43
    assert Counter(one.reason for one in found.drafts if not one.valid) == {
        "wrong answer": 23,
        "makes no sense": 14,
        "not enough information": 6,
    }
    assert len({one.draft.id for one in found.drafts}) == 215
    assert all(one.draft.context and one.draft.wording.answer for one in found.drafts)
    # Questions on one abstract are one group.
    assert len(set(source_groups([one.draft for one in found.drafts]).tolist())) == 175


def pira_rows(tmp_path, *ratings):
    header = "id_qa,abstract,question_en_origin,answer_en_origin,answer_in_text,question_meaningful,answer_equivalent"
    rows = [f"A{number},The text.,Why {number}?,Because.,{rating}" for number, rating in enumerate(ratings)]
    file = tmp_path / "rated.csv"
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return file


def test_pira_ratings_at_their_limits(tmp_path):
    file = pira_rows(tmp_path, "1.0,3.0,3.0", "1.0,2.0,5.0", "1.0,5.0,2.0", "0.0,1.0,1.0", ",,")
    found = read_label_set(file)
    assert [(one.valid, one.reason) for one in found.drafts] == [
        (True, ""),
        (False, "makes no sense"),
        (False, "wrong answer"),
        (False, "not enough information"),
    ]
    assert found.unlabelled == 1
    assert [one.draft.id for one in found.drafts] == ["A0", "A1", "A2", "A3"]


def test_a_rating_that_is_no_number_is_told(tmp_path):
    found = read_label_set(pira_rows(tmp_path, "1.0,5,5", "1.0,good,5"))
    assert len(found.drafts) == 1
    assert "row 2" in found.skipped[0]
    assert "'good'" in found.skipped[0]


def test_climaqa_table_with_invalid_ones(tmp_path):
    options = "a) heat\n--------------------\nb) cold\n--------------------\nc) rain\n--------------------\nd) wind"
    rows = [
        {"Question": "What warms?", "Options": options, "Answer": "a", "Context": "Heat warms.", "Validation": "valid"},
        {"Question": "What cools?", "Options": options, "Answer": "a", "Context": "X", "Validation": "INVALID"},
        {
            "Question": "It is <MASK> now.",
            "Answer": "warm",
            "Context": "X",
            "Validation": "no",
            "reason": "bad context",
        },
        {"Question": "Undecided?", "Answer": "yes", "Context": "X", "Validation": ""},
        {"Question": "Odd?", "Answer": "yes", "Context": "X", "Validation": "perhaps"},
    ]
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = read_label_set(file)
    assert [(one.valid, one.draft.kind) for one in found.drafts] == [(True, "mcq"), (False, "mcq"), (False, "cloze")]
    assert found.drafts[0].draft.wording.options == ("heat", "cold", "rain", "wind")
    assert found.drafts[0].draft.wording.correct == 0
    assert found.drafts[2].draft.wording.question == "It is warm now."
    assert found.drafts[2].reason == "bad context"
    assert (found.unlabelled, len(found.skipped)) == (1, 1)
    assert str(tmp_path) not in found.skipped[0]


def test_the_latest_word_of_an_expert_is_the_label(tmp_path, make_draft, expert):
    file = tmp_path / "drafts.jsonl"
    write_drafts(
        file,
        [
            make_draft(1, decisions=[expert(False, "wrong answer"), expert(True)]),
            make_draft(2, decisions=[expert(True), expert(False, "bad context"), expert(None)]),
            make_draft(3),
        ],
    )
    found = read_label_set(file).drafts
    assert [(one.draft.id, one.valid, one.reason) for one in found] == [("q1", True, ""), ("q2", False, "bad context")]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.csv", None, "There is no file"),
        ("empty.csv", "", "is empty"),
        ("plain.jsonl", '{"question": "a", "answer": "b"}', "does not say whether any question"),
        ("none.jsonl", '{"question": "a", "answer": "b", "valid": ""}', "Nobody has called"),
    ],
    ids=["missing", "empty", "without labels", "nothing labelled"],
)
def test_files_without_labels_are_refused(tmp_path, name, text, words):
    file = tmp_path / name
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_label_set(file)


def test_reasons_are_counted_by_set_and_kind(labels):
    figure = reason_figure([("ours", labels.drafts)])
    assert [(bar.label, bar.counts) for bar in figure.bars] == [("ours, freeform", (20,))]
    assert reason_figure([("ours", [one for one in labels.drafts if one.valid])]) is None
