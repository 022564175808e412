"""Scores of verdicts as tables, report and JSON."""

import json

from climassay.factcheck.results.scoring import NO_VERDICT, score_verdicts, verdict_data, verdict_report, verdict_tables
from climassay.factcheck.scales import CLIMATE_FEEDBACK, SCIENCE_FEEDBACK
from climassay.reporting import as_markdown

NO, HALF, YES, NEI = *SCIENCE_FEEDBACK.labels, SCIENCE_FEEDBACK.nei
TRUTH = [NO, NO, NO, NO, HALF, HALF, YES, YES]
PREDICTED = [NO, NO, HALF, "NEI", NO, HALF, YES, None]


def score(truth, predicted, scale=SCIENCE_FEEDBACK, **options):
    return score_verdicts(truth, predicted, scale, resamples=20, **options)


def test_data_for_json():
    data = verdict_data(score(TRUTH, PREDICTED, claims=list("aabcdefg")))
    assert json.loads(json.dumps(data)) == json.loads(json.dumps(data, allow_nan=False))
    assert data["n"] == 8
    assert data["without_nei"]["n"] == 7
    assert (data["duplicates"], data["without_duplicates"]["n"], data["without_duplicates"]["without_nei"]["n"]) == (
        1,
        7,
        6,
    )
    for place in (data, data["without_nei"], data["without_duplicates"]):
        for name in ("accuracy", "precision", "recall", "f1", "constant_accuracy", "constant_f1"):
            low, high = place[name]["interval"]
            assert low <= high
            assert 0 <= place[name]["value"] <= 1
    assert data["confusion"]["counts"] == ((2, 1, 0, 1, 0), (1, 1, 0, 0, 0), (0, 0, 1, 0, 1))
    assert {"scale", "classes", "constant", "averaged", "one_sided", "nei", "missing", "unknown", "unlabelled"} <= set(
        data
    )


def test_tables_name_what_counts():
    scores = score([*TRUTH, None], [*PREDICTED, NO], claims=list("aabcdefgh"))
    figures, confusion = verdict_tables(scores)
    assert [row[:3] for row in figures.rows[::4]] == [
        ("all rows", "accuracy", "8"),
        ("without NEI", "accuracy", "7"),
        ("each claim once", "accuracy", "7"),
        ("each claim once, without NEI", "accuracy", "6"),
    ]
    assert figures.rows[0][3:] == ("50.0", *figures.rows[0][4:5], "50.0", *figures.rows[0][6:])
    assert "const.: always 'inaccurate'" in figures.note
    assert "right more often" not in figures.note
    assert confusion.rows[0] == (NO, "2", "1", "0", "1", "0", "4")
    assert confusion.rows[-1] == ("sum", "3", "2", "1", "1", "1", "8")
    for words in ("(NEI): 1; missing: 1;", "On one side only", "earlier row: 1", "left out: 1"):
        assert words in confusion.note
    assert as_markdown(confusion).count("\n| ") == 6


def test_tables_show_only_rows_that_differ():
    (figures, confusion) = verdict_tables(score([NO, YES], [NO, NO], claims=["a", "b"]))
    assert {row[0] for row in figures.rows} == {"all rows"}
    assert "earlier row: 0" in confusion.note


def test_a_constant_answer_that_is_better_is_said():
    (figures, _) = verdict_tables(score([NO, NO, NO, YES], [YES, YES, NO, YES]))
    assert "The constant answer is right more often" in figures.note


def test_a_wide_confusion_matrix_is_numbered():
    labels = CLIMATE_FEEDBACK.labels[:6]
    scores = score(labels, labels[::-1], CLIMATE_FEEDBACK)
    (_, named), (_, numbered) = verdict_tables(scores, width=200), verdict_tables(scores, width=60)
    assert [column.label for column in named.columns] == ["truth", *labels, NEI, NO_VERDICT, "sum"]
    assert [column.label for column in numbered.columns] == ["truth", *"123456", "NEI", "none", "sum"]
    assert [row[0] for row in numbered.rows] == [*(f"{n + 1} {label}" for n, label in enumerate(labels)), "sum"]
    assert [row[1:] for row in numbered.rows] == [row[1:] for row in named.rows]
    assert "'imprecise', 'correct but'" in named.note


def test_a_report_is_one_page():
    page = verdict_report(score(TRUTH, PREDICTED), "a model", [("File", "<claims>.csv")]).to_html()
    for words in ("Verdicts of a model", "50.0% are right", "Confusion matrix", "<svg", "&lt;claims&gt;.csv"):
        assert words in page
