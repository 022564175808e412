"""A tagger's predictions: read, held against the authors' tags, and used for untagged statements with their error."""

import json
from dataclasses import replace

import numpy as np
import pytest

from climassay.confidence.trends import (
    Predictions,
    estimate_untagged_scores,
    measure_topic_accuracies,
    read_predictions,
    select_statements,
)
from climassay.confidence.trends.analysis import compute_confusion, select_held_out
from climassay.errors import InputError
from planted_statements import statement, topics_of

LEVELS = ("low", "medium", "high", "very high")


def given(level, sure=0.7):
    rest = (1 - sure) / 3
    return np.array([sure if one == level else rest for one in LEVELS])


def world(tagged, untagged):
    """Cases and predictions from pairs of true tag and tagger's answer; of untagged ones the answers."""
    statements = [statement(n, "ocean", tag=tag, headings=(f"S{n}",)) for n, (tag, _) in enumerate(tagged)]
    statements += [
        statement(n, "ocean", id=f"u{n}", tag=None, headings=(f"U{n}",), working_group="WG1")
        for n, _ in enumerate(untagged)
    ]
    answers = [answer for _, answer in tagged] + list(untagged)
    topics = topics_of(statements, [n % 2 for n in range(len(statements))])
    predictions = Predictions(LEVELS, {one.id: given(a) for one, a in zip(statements, answers, strict=True)})
    return select_statements(statements, topics, "working group"), predictions


def test_confusion_and_accuracy_by_topic():
    cases, predictions = world([("low", "low"), ("low", "high"), ("high", "high"), ("high", "medium")], [])
    known = select_held_out(cases, predictions)
    assert compute_confusion(known, predictions).tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    overall, first, second = measure_topic_accuracies(known, predictions, 2)
    assert (overall.topic, overall.accuracy.value, overall.error) == (None, 0.5, 0.75)
    assert (first.accuracy.value, first.error) == (1.0, 0.0)
    assert (second.accuracy.value, second.error) == (0.0, 1.5)


def test_levels_that_the_tagger_does_not_know_are_left_out():
    cases, predictions = world([("very low", "low"), ("low", "low")], [])
    assert len(select_held_out(cases, predictions)) == 1


def test_untagged_statements_are_corrected_for_the_taggers_errors():
    # The tagger calls half of all low statements high. Of 200 untagged ones it calls 50 low and 150 high: the truth
    # behind it is 100 low and 100 high, a mean score of 0, where counting its answers would say 0.5.
    tagged = [("low", "low"), ("low", "high")] * 100 + [(tag, tag) for tag in LEVELS[1:] for _ in range(200)]
    cases, predictions = world(tagged, ["low"] * 50 + ["high"] * 150)
    found = estimate_untagged_scores(cases, predictions, 2, samples=200)
    overall = next(one for one in found if one.topic is None and one.shares.n == 200)
    assert overall.shares.score == pytest.approx(0, abs=0.08)
    assert overall.shares.score_low < 0 < overall.shares.score_high < 0.5
    assert overall.low < overall.together < overall.high
    n, mean = overall.tagged, np.mean([case.score for case in cases.tagged if case.column == overall.column])
    assert overall.together == pytest.approx((200 * overall.shares.score + n * mean) / (200 + n))


def test_few_untagged_statements_are_not_estimated():
    cases, predictions = world([(tag, tag) for tag in LEVELS] * 10, ["low"] * 25)
    found = estimate_untagged_scores(cases, predictions, 2, samples=50)
    assert [one.topic for one in found] == [None]


def test_without_held_out_predictions_the_error_is_unknown():
    cases, predictions = world([("high", "high")], ["low"] * 30)
    alone = Predictions(LEVELS, {id: p for id, p in predictions.probabilities.items() if id.startswith("u")})
    with pytest.raises(InputError, match="error is unknown"):
        estimate_untagged_scores(cases, alone, 2)


def test_csv_and_json_lines_are_read(tmp_path):
    table = tmp_path / "p.csv"
    table.write_text("id,low,medium,high,very high\na,0.1,0.2,0.3,0.4\n")
    lines = tmp_path / "p.jsonl"
    row = {"low": 0.1, "medium": 0.2, "high": 0.3, "very high": 0.4}
    lines.write_text(json.dumps({"id": "a", "probabilities": row}) + "\n\n" + json.dumps({"id": "b", **row}) + "\n")
    assert read_predictions(table).levels == LEVELS
    for file in (table, lines):
        assert read_predictions(file).probabilities["a"] == pytest.approx([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("p.csv", "id,text\na,b\n", "probability for each level"),
        ("p.csv", "id,low,high\na,0.5,x\n", "row 1"),
        ("p.csv", "id,low,high\na,0.9,0.9\n", "sum to 1"),
        ("p.csv", "id,low,high\na,nan,1\n", "sum to 1"),
        ("p.jsonl", "{", "line 1 is not valid JSON"),
        ("p.jsonl", "[1]", "not an object"),
        ("p.jsonl", "", "probability for each level"),
    ],
    ids=["levels", "word", "sum", "nan", "json", "list", "empty"],
)
def test_other_files_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=words):
        read_predictions(tmp_path / name)


def test_residuals_of_other_documents_take_the_place_of_the_table():
    tagged = [("low", "low"), ("low", "high")] * 100 + [(tag, tag) for tag in LEVELS[1:] for _ in range(200)]
    cases, predictions = world(tagged, ["low"] * 50 + ["high"] * 150)
    exact = replace(predictions, residuals=np.zeros((5, 4)))
    vague = replace(predictions, residuals=np.array([[0.2, 0, -0.2, 0], [-0.2, 0, 0.2, 0]] * 3))
    found = [estimate_untagged_scores(cases, one, 2, samples=200) for one in (exact, vague)]
    sure, unsure = (next(one.shares for one in scores if one.topic is None and one.shares.n == 200) for scores in found)
    mean = predictions.for_statements(list(cases.untagged)).mean(axis=0)
    assert sure.values == pytest.approx(mean)
    assert unsure.score_high - unsure.score_low > 2 * (sure.score_high - sure.score_low)
