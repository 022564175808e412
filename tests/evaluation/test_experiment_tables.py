import csv
import io

import pytest

from climassay.evaluation.results import Cell
from climassay.evaluation.scores import (
    PUBLISHED_QUESTIONS,
    CellCounts,
    ExperimentScores,
    Score,
    published_scores,
    score_experiment,
)
from climassay.evaluation.tables import experiment_tables, score_rows
from climassay.reporting import as_csv
from climassay.statistics import Estimate, Interval
from experiments import experiment, questions_of


def tables_of(scores, published=()):
    return {one.name: one.table for one in experiment_tables(scores, published)}


@pytest.fixture(scope="module")
def scores():
    return score_experiment(experiment())


@pytest.fixture(scope="module")
def paper():
    """The paper's gold tables as if they were ours."""
    found = tuple(
        Score(
            Cell("gold", s.model, s.setting, s.task),
            s.metric,
            s.level,
            Estimate(s.value, Interval(s.value, s.value), PUBLISHED_QUESTIONS["gold", s.task][s.level]),
            0,
        )
        for s in published_scores("gold")
    )
    cells = dict.fromkeys(score.cell for score in found)
    return ExperimentScores(found, (), tuple(CellCounts(cell, 1, 0, 0, 0, (), ()) for cell in cells), ())


def marked(table, model, mark):
    """(setting, column label) of a model's cells with a mark."""
    return {
        (table.rows[row][1], table.columns[column].label.split(" n=")[0])
        for (row, column), marks in table.marks.items()
        if mark in marks and table.rows[row][0] == model
    }


def test_bold_cells_are_those_of_the_papers_table_3(paper):
    table = tables_of(paper)["mcq-cloze"]
    assert marked(table, "mixtral-8x22b", "best") == {
        ("default", "MCQ Hypo"),
        ("few-shot", "MCQ Hypo"),
        ("few-shot", "MCQ Reason"),
        ("rag-source", "MCQ Base"),
        ("rag-source", "MCQ Overall"),
        ("few-shot", "cloze EM"),
        ("rag-source", "cloze EM"),
        ("few-shot", "cloze PS"),
    }
    assert marked(table, "gemini-1.5-flash", "best") == {
        ("default", "MCQ Hypo"),
        *(("long-context-source", name) for name in ("MCQ Base", "MCQ Reason", "MCQ Overall", "cloze EM", "cloze PS")),
    }


def test_one_cell_of_a_column_is_best_of_all(paper):
    tops = {}
    table = tables_of(paper)["mcq-cloze"]
    for (row, column), marks in table.marks.items():
        if "top" in marks:
            tops.setdefault(table.columns[column].label.split(" n=")[0], []).append(table.rows[row][:2])
    assert tops["MCQ Overall"] == [("gpt-4o", "rag-source")]
    assert tops["cloze EM"] == [("llama3.1-8b", "rag-source")]
    assert tops["MCQ Hypo"] == [("llama3.1-8b", "rag-source")]


def test_published_rows_are_named_so_and_never_marked(scores):
    beside = published_scores("gold", ["gpt-4o"])
    plain, table = tables_of(scores)["mcq-cloze"], tables_of(scores, beside)["mcq-cloze"]
    rows = [row for row in table.rows if "published" in row[0]]
    assert [row[1] for row in rows] == ["default", "few-shot", "rag-source", "rag-held-out"]
    assert rows[0] == ("gpt-4o (published)", "default", "86.77", "86.11", "82.27", "85.71", "53.12", "0.88")
    assert table.marks == plain.marks
    assert "cannot be compared with ours item by item" in table.note
    assert "published" not in plain.note
    assert not any("published" in row[0] for row in tables_of(scores, beside)["own-metrics"].rows)


def test_significant_rows_are_set_off():
    big = experiment({("m", "default"): 0.2, ("m", "rag"): 0.9}, questions=questions_of(60, 0, 0))
    table = tables_of(score_experiment(big))["settings"]
    assert table.strong == {0}
    assert table.rows[0][1] == "rag - default"
    assert table.rows[0][-1] == "<0.001"
    assert "models" not in tables_of(score_experiment(big))


def test_tables_without_rows_are_left_out():
    only = experiment({("m", "default"): 0.5}, questions=questions_of(6, 0, 0))
    assert set(tables_of(score_experiment(only))) == {"mcq-cloze", "counts"}


def test_the_form_for_programs_has_every_score(scores):
    rows = list(csv.DictReader(io.StringIO(as_csv(score_rows(scores, published_scores("silver", ["gpt-4o"]))))))
    ours = [row for row in rows if row["origin"] == "ours"]
    assert len(ours) == len(scores.scores)
    for row, score in zip(ours, scores.scores, strict=True):
        assert float(row["value"]) == pytest.approx(score.estimate.value, abs=1e-5)
        assert float(row["low"]) <= float(row["value"]) + 1e-5
        assert int(row["n"]) == score.estimate.n
    assert [row["value"] for row in rows if row["origin"] == "published"][:2] == ["0.88", "0.8491"]
