from dataclasses import replace

import pytest

from climassay.evaluation import published_scores
from climassay.evaluation.contamination import contamination
from climassay.evaluation.report import answer_tables, experiment_report, is_wrong
from climassay.evaluation.results import Cell
from experiments import experiment, outcome, question


@pytest.fixture(scope="module")
def given():
    return experiment()


def test_the_page_has_every_part(given):
    questions = given.questions["primer"]
    overlap = contamination(questions, [questions[0].context, "other words"], against="a corpus")
    report = experiment_report(given, published=published_scores("gold", ["gpt-4o"]), contamination=[overlap])
    assert [section.heading for section in report.sections] == [
        "Summary",
        "Scores",
        "Figures",
        "Calibration",
        "Paired tests",
        "Contamination",
        "How it was asked",
        "Questions and answers",
    ]
    page = report.to_html()
    assert "2 models in 2 settings on 27 questions of primer: 81 answers." in page
    assert "gpt-4o (published)" in page
    assert "Questions that share words with a corpus" in page
    assert ("Run", "r00000001") in report.facts
    assert ("Metric BERTScore", "bundled encoder") in report.facts


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
