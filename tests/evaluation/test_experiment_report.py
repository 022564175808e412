import csv
import io
from dataclasses import replace

import pytest

from climassay.evaluation import (
    Cell,
    ExperimentScores,
    experiment_report,
    experiment_tables,
    published_scores,
    score_experiment,
)
from climassay.evaluation.calibration import calibrate_experiment, calibration_table
from climassay.evaluation.contamination import contamination
from climassay.evaluation.paper_scores import PUBLISHED_QUESTIONS
from climassay.evaluation.report import answer_tables, is_wrong, level_figures, setting_figures, source_figure
from climassay.evaluation.scores import CellCounts, Score
from climassay.evaluation.tables import score_rows
from climassay.reporting import as_csv
from climassay.statistics import Estimate, Interval
from experiments import experiment, outcome, question, questions_of, record


@pytest.fixture(scope="module")
def given():
    return experiment()


def test_the_page_has_every_part(given):
    questions = given.questions["primer"]
    overlap = contamination(questions, [questions[0].context, "other words"], against="a corpus")
    report = experiment_report(given, published=published_scores("gold", ["gpt-4o"]), contamination=[overlap])
    assert [section.heading for section in report.sections] == [
        "Summary", "Scores", "Figures", "Calibration", "Paired tests", "Contamination", "How it was asked",
        "Questions and answers",
    ]  # fmt: skip
    page = report.to_html()
    assert "2 models in 2 settings on 27 questions of primer: 81 answers." in page
    assert "gpt-4o (published)" in page
    assert "Questions that share words with a corpus" in page
    assert ("Run", "r00000001") in report.facts
    assert ("Metric BERTScore", "bundled encoder") in report.facts


def test_the_summary_has_units_and_says_where_several_are_best():
    cells = [Cell("set", "m", setting, "mcq") for setting in ("default", "few-shot")]
    asked = tuple(question("mcq", number) for number in range(4))
    outcomes = [outcome(cell, one, {"accuracy": float(one is asked[0])}) for cell in cells for one in asked]
    given = experiment({("m", "default"): 0.5}, questions=asked, benchmark="set")
    report = experiment_report(replace(given, outcomes=tuple(outcomes), cells=tuple(map(record, cells))))
    said = report.sections[0].blocks[0].text
    assert said.startswith("Highest accuracy: m, default and 1 other, 25.0% (95% interval 4.6 to 69.9%, n = 4,")
    [figure] = [one for one in setting_figures(score_experiment(given), "set") if one.title == "Accuracy"]
    assert "over 4 questions" in figure.note


def test_settings_are_listed_without_what_is_empty(given):
    [cell, *_] = given.cells
    told = replace(cell, setting={"kind": "rag", "collections": ["a", "b"], "adapter": ""}, dtype=None, notes=())
    [table] = experiment_report(replace(given, cells=(told,)), answers=False).sections[-1].blocks
    assert "notes" not in [column.heading for column in table.columns]
    assert table.rows[0][-1] == "kind rag; collections a, b"


def test_every_answer_is_there_with_its_scores(given):
    tables = answer_tables(given)
    assert len(tables.questions) == 27
    assert sum(len(one.answers) for one in tables.questions) == len(given.outcomes)
    mcq = tables.questions[0]
    assert [option.correct for option in mcq.options] == [True, False, False, False]
    assert mcq.metrics == ("accuracy",)
    assert {row.scores for row in mcq.answers} <= {("0",), ("1",)}
    assert all(row.text[:3] in ("a) ", "b) ") for row in mcq.answers)
    assert all(row.remarks[0].startswith("probability 0.") for row in mcq.answers)


def test_texts_are_stored_once_however_often_they_were_given(given):
    tables = answer_tables(given)
    texts = [source.text for source in tables.sources]
    assert len(texts) == len(set(texts))
    contexts = {one.context for one in given.questions["primer"]}
    assert set(texts) == contexts | {"A passage about aerosols.", "A passage about clouds."}
    places = {tables.sources[place].text for one in tables.questions for row in one.answers for place in row.sources}
    assert places == {"A passage about aerosols.", "A passage about clouds."}
    assert tables.sources[tables.questions[0].source].text == given.questions["primer"][0].context


def test_what_a_model_wrote_cannot_become_markup(given):
    hostile = tuple(replace(one, answer="<script>alert(1)</script>") for one in given.outcomes)
    page = experiment_report(replace(given, outcomes=hostile)).to_html()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


CELL = Cell("set", "m", "default", "freeform")
ASKED = question("freeform", 1)


@pytest.mark.parametrize(
    ("scores", "error", "wrong"),
    [
        ({"accuracy": 1.0}, None, False),
        ({"accuracy": 0.0}, None, True),
        ({"exact_match": 0.0, "phrase_similarity": 0.9}, None, True),
        ({"supported": 1.0, "factual_accuracy": 0.6}, None, False),
        ({"supported": 0.0, "factual_accuracy": 0.4}, None, True),
        ({"factual_accuracy": 0.4}, None, True),
        ({"factual_accuracy": 0.6}, None, False),
        ({"judged_accuracy": 0.5, "supported": 0.0}, None, False),
        ({"judged_accuracy": 0.0, "supported": 1.0}, None, True),
        ({"bleu": 0.0}, None, False),
        ({}, "time out", True),
    ],
)
def test_wrong_is_what_the_binary_metric_of_the_task_says(scores, error, wrong):
    assert is_wrong(outcome(CELL, ASKED, scores, error=error)) is wrong


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
        ("default", "MCQ Hypo"), ("few-shot", "MCQ Hypo"), ("few-shot", "MCQ Reason"), ("rag-source", "MCQ Base"),
        ("rag-source", "MCQ Overall"), ("few-shot", "cloze EM"), ("rag-source", "cloze EM"),
        ("few-shot", "cloze PS"),
    }  # fmt: skip
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


@pytest.mark.parametrize(
    ("files", "words"),
    [(["hub:UCSD-GENIE/ClimaQA/Gold"], "the same questions, other books"), (["mine.csv"], "other questions, books")],
)
def test_published_rows_say_whether_they_are_for_the_same_questions(files, words):
    given = replace(experiment(), config={"benchmarks": [{"name": "primer", "files": files}]})
    page = experiment_report(given, published=published_scores("gold", ["gpt-4o"]), answers=False).to_html()
    assert words in page


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


def test_more_models_than_colours_are_parted():
    many = experiment({(f"m{n}", "default"): 0.5 for n in range(7)}, questions=questions_of(6, 0, 0))
    assert [len(figure.groups) for figure in level_figures(score_experiment(many), "primer")] == [5, 2]


def test_forest_plots_show_every_cell_and_the_constant_answer(scores):
    figures = {figure.axis: figure for figure in setting_figures(scores, "primer")}
    assert [dot.label for dot in figures["accuracy"].dots] == ["small, default", "small, rag-source", "large, default"]
    assert {dot.reference for dot in figures["accuracy"].dots} == {0.25}
    assert {dot.reference for dot in figures["BERTScore"].dots} == {None}
    assert all(0 <= dot.low <= dot.value <= dot.high <= 1 for figure in figures.values() for dot in figure.dots)


def test_phrase_similarity_below_zero_has_an_axis_that_reaches_it(given):
    below = [
        replace(one, scores={**one.scores, "phrase_similarity": -0.4}) if one.cell.task == "cloze" else one
        for one in given.outcomes
    ]
    figures = setting_figures(score_experiment(replace(given, outcomes=tuple(below))), "primer")
    assert [dot.value for dot in figures[-1].dots] == pytest.approx([-0.4] * 3)
    assert figures[-1].value_axis.low <= -0.4 < 0 <= figures[-1].value_axis.high


def test_questions_are_counted_over_their_sources():
    asked = [question("mcq", 0, document="a"), question("cloze", 1, document="b"), question("mcq", 2, document="b")]
    asked.append(replace(question("freeform", 3), document=None))
    figure = source_figure(asked, "Sources")
    assert [(bar.label, bar.counts) for bar in figure.bars] == [
        ("b", (1, 0, 1)),
        ("a", (1, 0, 0)),
        ("source not named", (0, 1, 0)),
    ]
    assert source_figure([replace(one, document=None) for one in asked], "Sources") is None
    assert source_figure([], "Sources") is None


def test_calibration_is_that_of_the_chosen_options(given):
    found = {one.name: one for one in calibrate_experiment(given)}
    assert set(found) == {"small, default", "small, rag-source", "large, default"}
    one = found["small, rag-source"]
    right = [o for o in given.outcomes if o.cell == one.cell]
    assert one.confidence == pytest.approx(sum(o.probability for o in right) / len(right))
    assert one.accuracy == pytest.approx(sum(o.scores["accuracy"] for o in right) / len(right))
    assert one.curve.points[-1].coverage == 1


def test_answers_without_a_probability_are_counted_and_not_covered(given):
    bare = [replace(one, probability=None) if one.question == "mcq-0" else one for one in given.outcomes]
    found = calibrate_experiment(replace(given, outcomes=tuple(bare)))
    assert {(one.n, one.n_without_probability) for one in found} == {(11, 1)}
    assert found[0].curve.points[-1].coverage == pytest.approx(11 / 12)
    assert [row[-1] for row in calibration_table(found, "primer").rows] == ["-", "-", "-"]
